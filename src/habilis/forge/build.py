"""`Forge`: from a request to a tested tool in the library. Every stage is a recorded step, so a build can be resumed.

search → spec → tests → candidates → repair → agreement → mutants → register
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from habilis.core.errors import ForgeError, ToolDefinitionError, ToolExists
from habilis.flows import flow, step
from habilis.flows.definitions import Flow
from habilis.forge.agreement import find_difference
from habilis.forge.asking import Conversation, code_block, functions_in, prompt, without_body
from habilis.forge.contract import Candidate, MutationScore, Verification
from habilis.forge.examples import called_name, check_signature, module_with_tests, read_example
from habilis.forge.lessons import Lessons
from habilis.forge.library import Library
from habilis.forge.reference import Reference, quoted, read_references
from habilis.forge.reuse import Finder
from habilis.forge.review import review, verify_reviewed
from habilis.forge.source import imported_tools, read_source
from habilis.forge.verification import KILL_SHARE, mutation_score, passes_on_stub, verify
from habilis.forge.written_tests import has_enough_tests, outlying_tests, passes_examples, read_tests, with_more_tests
from habilis.journal import Store, recording_scope
from habilis.models.contract import Message, Model

Status = Literal['reused', 'built', 'refused']
Watch = Callable[[str, str], None]
"""Called with the name of a stage and its result."""

BUILD_FLOW = f'{__name__}:build_tool'
"""The name of builds in the journal."""

TRIES = 3
"""Attempts at a specification, at tests, and at tests that notice enough mutants."""

VARIED = 0.7
"""Temperature of further solutions, which are to differ from the first."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much a build may do."""

    candidates: int = 3
    """Implementations that are written side by side."""

    repairs: int = 2
    """Rounds in which failing implementations are corrected."""

    red_check: bool = True
    """Whether the tests must fail on a stub, and notice mutants of the code."""

    agreement: bool = True
    """Whether implementations must agree on generated inputs."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """Outcome of a build."""

    status: Status
    name: str = ''
    version: int = 0
    reason: str = ''
    """Why it was refused, or reused."""


class Refused(ForgeError):
    """No tool was built; the message says why."""


class Forge:
    """Builds tools for a library with a model."""

    def __init__(
        self, library: Library, model: Model, *, options: Options | None = None, watch: Watch | None = None
    ) -> None:
        self.library = library
        self.model = model
        self.options = options or Options()
        self._watch = watch
        self._finder = Finder(library, model)
        self._lessons = Lessons(library.folder / '.lessons.jsonl')
        self._flow: Flow[..., Built] = flow(name='build_tool')(self._build)

    async def build(
        self,
        request: str,
        examples: Sequence[str] = (),
        *,
        name: str = '',
        uses: Sequence[str] = (),
        context: Sequence[str | Reference] = (),
        journal: Store | str | None = None,
        run_id: str | None = None,
    ) -> Built:
        """A tool for this request: found in the library, or built.

        Args:
            request: what the tool is for, in words.
            examples: conditions that it must fulfil, such as `reverse('ab') == 'ba'`.
            name: what the tool is called; empty to let the examples or the model decide.
            uses: tools of the library that it must be composed of.
            context: folders, text files and links to repositories, which the specification and the tests may follow.
            journal: where the build is recorded; None for the default. Inside another run it is a part of
                that.
            run_id: name to resume it by.
        """
        if not request.strip():
            msg = 'the request is empty: say what the tool is for'
            raise ForgeError(msg)
        for example in examples:
            read_example(example)
        references = await read_references(context, request)
        given: dict[str, Any] = {
            'examples': list(examples),
            'wanted': name,
            'uses': list(uses),
            'references': references,
        }
        more = {key: value for key, value in given.items() if value}  # the title of the run has only what was given
        if recording_scope() is not None:
            return await self._flow(request, **more)
        run = await self._flow.start(request, journal=journal, run_id=run_id, **more)
        return await run.result()

    async def resume(self, run_id: str, *, journal: Store | str | None = None) -> Built:
        """Continue a build whose process died."""
        return await self._flow.resume(run_id, journal=journal)

    # The flow ---------------------------------------------------------------------------------------------------------

    async def _build(
        self,
        request: str,
        examples: list[str] | None = None,
        wanted: str = '',
        uses: list[str] | None = None,
        references: list[Reference] | None = None,
    ) -> Built:
        examples, uses, references = examples or [], uses or [], references or []
        found = '' if uses else await step(name='search')(self._finder.find)(request, examples)
        if found:
            self._tell('search', f'reuse {found}')
            return Built(status='reused', name=found, version=self.library.current(found))
        try:
            name, stub = await step(name='spec')(self._spec)(request, examples, wanted, quoted(references))
            tests = await step(name='tests')(self._write_tests)(request, examples, name, stub, quoted(references))
            code, tests = await step(name='implement')(self._implement)(
                request, examples, name, stub, tests, uses, quoted(references)
            )
            tests, score = await step(name='red check')(self._red_check)(request, name, stub, tests, code)
            context = {one.source: one.sha256 for one in references}
            return await step(name='register')(self._register)(request, examples, name, code, tests, score, context)
        except Refused as reason:
            self._tell('refused', str(reason))
            await step(name='lesson')(self._learn)(request, str(reason))
            return Built(status='refused', reason=str(reason))

    _build.__qualname__ = BUILD_FLOW.partition(':')[2]  # what lists of runs call it

    async def _spec(self, request: str, examples: list[str], wanted: str, context: str) -> tuple[str, str]:
        """Name and definition of the function."""
        wanted = wanted or called_name(examples)
        naming = f'The name is `{wanted}`.' if wanted else 'Choose a name that says what it returns or does.'
        lessons = self._lessons.similar_to(request)
        told = ''.join(f'- {lesson.reason}\n' for lesson in lessons)
        conversation = Conversation(self.model, 'spec')
        text = prompt('spec').format(
            request=request,
            examples=_shown_examples(examples),
            name=wanted or '<name>',
            naming=naming,
            lessons=f'\nEarlier attempts at something similar failed:\n{told}' if told else '',
            context=context,
        )
        problem = ''
        for _ in range(TRIES):
            reply = await conversation.say(text)
            try:
                name, stub = self._read_spec(code_block(reply), wanted, examples)
            except (ForgeError, ToolDefinitionError) as error:
                problem = str(error)
                text = f'{problem}\n\nReply with one code block that has the corrected definition.'
                continue
            self._tell('spec', stub)
            return name, stub
        raise Refused(f'no usable specification: {problem}')

    def _read_spec(self, code: str, wanted: str, examples: Sequence[str]) -> tuple[str, str]:
        functions = functions_in(code)
        if not functions:
            msg = 'there is no function definition in your reply'
            raise ForgeError(msg)
        name = wanted if wanted in functions else next(iter(functions))
        if wanted and name != wanted:
            msg = f'the function must be called {wanted}'
            raise ForgeError(msg)
        read_source(name, functions[name])
        check_signature(functions[name], examples)
        if name in self.library.names():
            msg = f'there is already a tool {name!r} that does something else; choose another name'
            raise ForgeError(msg)
        return name, without_body(functions[name])

    async def _write_tests(
        self, request: str, examples: list[str], name: str, stub: str, context: str, temperature: float | None = None
    ) -> str:
        """Tests from a conversation that never sees an implementation."""
        conversation = Conversation(self.model, 'tests', temperature=temperature, is_complete=has_enough_tests)
        text = prompt('tests').format(
            stub=stub, request=request, examples=_shown_examples(examples), name=name, context=context
        )
        problem = ''
        for _ in range(TRIES):
            reply = await conversation.say(text)
            tests = read_tests(reply, name)
            whole = module_with_tests(name, tests, examples)
            if len(tests) < 3:
                problem = f'{len(tests)} tests call {name}; at least three are needed'
            elif self.options.red_check and await passes_on_stub(Candidate(name=name, code=stub, tests=whole)):
                problem = 'the tests pass on a function that does nothing, so they show nothing'
            else:
                self._tell('tests', f'{len(tests)} tests')
                return whole
            text = f'{problem}. Reply with one code block of better tests.'
        raise Refused(f'no usable tests: {problem}')

    async def _implement(
        self,
        request: str,
        examples: list[str],
        name: str,
        stub: str,
        tests: str,
        uses: list[str],
        context: str,
    ) -> tuple[str, str]:
        """Code that passes all tests, and on which independent implementations agree; and these tests."""
        rewrite = partial(self._write_tests, request, examples, name, stub, context, temperature=VARIED)
        text = prompt('implement').format(
            stub=stub, request=request, examples=_shown_examples(examples), tools=self._helpers(request, uses)
        )
        talks = [
            Conversation(self.model, f'candidate {number + 1}', temperature=VARIED if number else 0.0)
            for number in range(self.options.candidates)
        ]
        codes = await asyncio.gather(*(self._ask_code(talk, text, name, uses) for talk in talks))
        results: list[Verification] = []
        for round_ in range(self.options.repairs + 1):
            candidates = [self._candidate(name, code, tests) for code in codes]
            results = await verify_reviewed(candidates)
            passing = [one for one, result in zip(candidates, results, strict=True) if result.ok]
            self._tell('verify', f'{len(passing)} of {len(candidates)} candidates pass all tests')
            if passing:
                await self._check_agreement(passing, tests)
                return passing[0].code, tests
            if round_ == 0:
                tests = await self._mend_tests(candidates, results, rewrite)
                results = await verify_reviewed([replace(one, tests=tests) for one in candidates])
                if any(result.ok for result in results):
                    codes = [one.code for one, result in zip(candidates, results, strict=True) if result.ok]
                    continue
            if round_ < self.options.repairs:
                reports = [prompt('repair').format(report=result.report[:2000]) for result in results]
                work = [self._ask_code(talk, report, name, uses) for talk, report in zip(talks, reports, strict=False)]
                codes = await asyncio.gather(*work)
        raise Refused(f'no implementation passes the tests: {results[0].report[:500]}')

    async def _mend_tests(
        self, candidates: list[Candidate], results: list[Verification], rewrite: Callable[[], Awaitable[str]]
    ) -> str:
        """Tests without those that all candidates agree against. If there are too many of them, new tests.

        If all candidates fail the user's examples, the code is wrong, and the tests stay.
        """
        name, tests = candidates[0].name, candidates[0].tests
        if outliers := outlying_tests(results):
            self._tell('tests', f'dropped, as independent implementations agree against them: {outliers}')
            kept = {key: source for key, source in functions_in(tests).items() if key not in outliers}
            return module_with_tests(name, kept)
        return await rewrite() if any(passes_examples(result) for result in results) else tests

    async def _check_agreement(self, passing: list[Candidate], tests: str) -> None:
        if not self.options.agreement:
            return
        calls = re.findall(rf'assert ({passing[0].name}\(.*\)) ==', tests)
        different = list({candidate.code: candidate for candidate in passing}.values())
        difference = await find_difference(different, calls)
        if difference is not None:
            results = ' or '.join(result[:80] for result in difference.results)
            msg = f'the request leaves open what {difference.call[:200]} is: {results}? Give it as an example'
            raise Refused(msg)

    async def _red_check(self, request: str, name: str, stub: str, tests: str, code: str) -> tuple[str, MutationScore]:
        """Tests that notice most of the mutants of the code, and how many; more are asked for where they do not."""
        if not self.options.red_check:
            return tests, MutationScore()
        candidate = self._candidate(name, code, tests)
        result = await verify(candidate)
        talk = Conversation(
            self.model,
            'more tests',
            is_complete=has_enough_tests,
            messages=[Message(role='user', text=f'{stub}\n\n{request}'), Message(role='assistant', text=tests)],
        )
        score = MutationScore()
        for attempt in range(TRIES):
            score = await mutation_score(candidate, seconds=result.seconds)
            self._tell('red check', f'{score.killed} of {score.total} mutants noticed')
            if score.share >= KILL_SHARE:
                return candidate.tests, score
            if attempt < TRIES - 1:
                reply = await talk.say(prompt('more_tests').format(survivors='\n'.join(score.survivors[:10])))
                candidate = await with_more_tests(candidate, read_tests(reply, name))
        raise Refused(
            f'the tests notice only {score.killed} of {score.total} wrong variants, such as {score.survivors[0]}'
        )

    async def _register(
        self,
        request: str,
        examples: list[str],
        name: str,
        code: str,
        tests: str,
        score: MutationScore,
        context: dict[str, str],
    ) -> Built:
        candidate = self._candidate(name, code, module_with_tests(name, functions_in(tests), examples))
        result = await verify(candidate)
        if not result.ok:
            raise Refused(result.report)
        try:
            made = self.library.add(
                candidate,
                origin=self.model.name,
                request=request,
                tests=len(result.tests),
                mutants=score.total,
                killed=score.killed,
                findings=(await review(candidate)).noted,
                context=context,
            )
        except ToolExists:  # another build was faster, or this one died after it
            return Built(status='reused', name=name, version=self.library.current(name), reason='built meanwhile')
        self._lessons.succeeded(self._lessons.similar_to(request))
        self._tell('register', f'{name} v{made.version}')
        return Built(status='built', name=name, version=made.version)

    async def _learn(self, request: str, reason: str) -> None:
        self._lessons.failed(request, reason, self._lessons.similar_to(request))

    # Use it -----------------------------------------------------------------------------------------------------------

    async def answer(self, request: str, name: str) -> str:
        """Call a tool with arguments taken from the request, and answer in words."""
        return await self._finder.answer(request, name)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _ask_code(self, talk: Conversation, text: str, name: str, uses: Sequence[str]) -> str:
        reply = await talk.say(text)
        code = code_block(reply)
        if name not in functions_in(code):
            return f'def {name}(*args):\n    raise NotImplementedError\n'
        if unused := [one for one in uses if one not in imported_tools(code)]:
            return f'def {name}(*args):\n    raise NotImplementedError("use `from library import {unused[0]}`")\n'
        return code

    def _candidate(self, name: str, code: str, tests: str) -> Candidate:
        try:
            uses = read_source(name, code).uses
        except (ForgeError, ToolDefinitionError):
            uses = ()
        known = set(self.library.names())
        return Candidate(
            name=name, code=code, tests=tests, uses={one: self.library.candidate(one) for one in uses if one in known}
        )

    def _helpers(self, request: str, uses: Sequence[str]) -> str:
        found = [self.library.manifest(one) for one in uses] or self.library.search(request, limit=3, threshold=0.3)
        found = [one for one in found if self.library.manifest(one.name).language == 'python']
        if not found:
            return ''
        lines = ''.join(f'- from library import {one.name}  # {one.signature}: {one.summary}\n' for one in found)
        rule = (
            'Compose it of these functions, all of which it must call'
            if uses
            else 'These functions exist and may be used'
        )
        return f'\n{rule}:\n{lines}'

    def _tell(self, stage: str, text: str) -> None:
        if self._watch is not None:
            self._watch(stage, text)


def _shown_examples(examples: Sequence[str]) -> str:
    if not examples:
        return ''
    lines = ''.join(f'- {example.strip()}\n' for example in examples)
    return f'\nThis must hold:\n{lines}'
