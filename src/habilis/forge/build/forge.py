"""`Forge`: from a request to a tested tool in the library. Every stage is a recorded step, so a build can be resumed.

search → spec → tests → candidates → repair → agreement → mutants → register
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from habilis.core.errors import ForgeError, ToolDefinitionError, ToolExists
from habilis.flows import flow, step
from habilis.flows.definitions import Flow
from habilis.forge.build.examples import module_with_tests, read_example
from habilis.forge.build.languages import implementation_prompt, no_code, read_code, tests_in, usable_tests
from habilis.forge.build.lessons import Lessons
from habilis.forge.build.reference import Reference, read_references
from habilis.forge.build.requests import StageConversation, functions_in, prompt
from habilis.forge.build.reuse import Finder
from habilis.forge.build.specification import TRIES, Order, Specification, specify
from habilis.forge.build.written_tests import (
    has_enough_tests,
    outlying_tests,
    passes_examples,
    read_tests,
    weakness,
    with_more_tests,
)
from habilis.forge.checks.agreement import find_difference
from habilis.forge.checks.inputs import calls_in
from habilis.forge.checks.mutation import KILL_SHARE, mutation_score
from habilis.forge.checks.review import review, verify_reviewed
from habilis.forge.checks.tables import only_knows
from habilis.forge.checks.verification import verify
from habilis.forge.contract import Candidate, Language, MutationScore, Refused, Verification
from habilis.forge.library.library import Library
from habilis.forge.library.source_edits import free_name, renamed_in
from habilis.forge.source import imported_tools, read_source
from habilis.journal import Store, recording_scope
from habilis.models.contract import Message, Model

Status = Literal['reused', 'built', 'refused']
Watch = Callable[[str, str], None]
"""Called with the name of a stage and its result."""

Written = tuple[StageConversation, str]
"""Code, and the conversation in which it was written."""

BUILD_FLOW = f'{__name__}:build_tool'
"""The name of builds in the journal."""

VARIED = 0.7
"""Temperature of further solutions, which are to differ from the first."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How much a build may do."""

    candidates: int | None = None
    """Implementations that are written side by side; None for three by a small model, two by another."""

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


class Forge:
    """Builds tools for a library with a model."""

    def __init__(
        self, library: Library, model: Model, *, options: BuildOptions | None = None, watch: Watch | None = None
    ) -> None:
        self.library = library
        self.model = model
        self.options = options or BuildOptions()
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
        language: Language | None = None,
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
            language: what the tool is to be written in; None for Python, and tools of any language are reused. The
                examples are conditions in Python in any case.
            journal: where the build is recorded; None for the default. Inside another run it is a part of
                that.
            run_id: name to resume it by.
        """
        _check(request, examples, uses, language)
        references = await read_references(context, request)
        given: dict[str, Any] = {
            'examples': list(examples),
            'wanted': name,
            'uses': list(uses),
            'references': references,
            'language': language,
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
        language: Language | None = None,
    ) -> Built:
        order = Order(
            request=request,
            examples=examples or [],
            name=wanted,
            uses=uses or [],
            references=references or [],
            language=language or 'python',
        )
        found = '' if uses else await step(name='search')(self._finder.find)(request, order.examples, language)
        if found:
            self._tell('search', f'reuse {found}')
            return Built(status='reused', name=found, version=self.library.current(found))
        try:
            spec = await step(name='spec')(self._specify)(order)
            tests = await step(name='tests')(self._write_tests)(order, spec)
            code, tests = await step(name='implement')(self._implement)(order, spec, tests)
            tests, score = await step(name='red check')(self._red_check)(order, spec, tests, code)
            return await step(name='register')(self._register)(order, spec, code, tests, score)
        except Refused as reason:
            self._tell('refused', str(reason))
            await step(name='lesson')(self._learn)(request, str(reason))
            return Built(status='refused', reason=str(reason))

    _build.__qualname__ = BUILD_FLOW.partition(':')[2]  # what lists of runs call it

    async def _specify(self, order: Order) -> Specification:
        lessons = [lesson.reason for lesson in self._lessons.similar_to(order.request)]
        spec = await specify(order, self.model, lessons=lessons, is_taken=set(self.library.names()).__contains__)
        self._tell('spec', '\n'.join([spec.stub, *spec.assumptions]))
        return spec

    async def _write_tests(self, order: Order, spec: Specification, temperature: float | None = None) -> str:
        """Tests from a conversation that never sees an implementation."""
        conversation = StageConversation(self.model, 'tests', temperature=temperature, is_complete=has_enough_tests)
        text = prompt('tests').format(
            stub=spec.stub,
            request=order.request,
            examples=order.shown_examples,
            name=spec.name,
            context=order.context,
        )
        problem = ''
        for attempt in range(TRIES):
            has_tests = attempt == 0 and temperature is None and bool(read_tests(spec.reply, spec.name))
            reply = spec.reply if has_tests else await conversation.say(text)
            tests = usable_tests(spec.stub, read_tests(reply, spec.name), order.language)
            whole = module_with_tests(spec.name, tests, order.examples)
            if problem and not tests:
                pass  # an empty reply is no news
            elif len(tests) < 3:
                problem = f'{len(tests)} tests call {spec.name} with plain values; at least three are needed'
            else:
                stub = Candidate(name=spec.name, code=spec.stub, tests=whole)
                problem = await weakness(stub, is_first=attempt == 0) if self.options.red_check else ''
            if not problem:
                self._tell('tests', f'{len(tests)} tests')
                return whole
            text = f'{problem}. Reply with one code block of better tests.'
        raise Refused(f'no usable tests: {problem}')

    async def _implement(self, order: Order, spec: Specification, tests: str) -> tuple[str, str]:
        """Code that passes all tests, and on which independent implementations agree; and these tests."""
        written = await self._first_code(order, spec)
        failed: set[str] = set()
        results: list[Verification] = []
        attempts: list[Verification] = []
        for round_ in range(self.options.repairs + 1):
            candidates = [self._candidate(order, spec, code, tests) for _, code in written]
            results = await verify_reviewed(candidates)
            passing = [one for one, result in zip(candidates, results, strict=True) if result.ok]
            self._tell('verify', f'{len(passing)} of {len(candidates)} candidates pass all tests')
            if passing:
                await self._check_agreement(passing, tests)
                return passing[0].code, tests
            if round_ == 0:
                tests, results = await self._mend_tests(order, spec, tests, written, results)
                if any(result.ok for result in results):
                    written = [one for one, result in zip(written, results, strict=True) if result.ok]
                    continue
            attempts += results
            if round_ == self.options.repairs:
                break
            failed.update(code for _, code in written)
            reports = [prompt('repair').format(report=result.report[:2000]) for result in results]
            written = await self._write_code([talk for talk, _ in written], reports, order, spec)
            written = [(talk, code) for talk, code in written if code not in failed]  # who repeats it has no other idea
            if not written:
                break
        closest = max(attempts, key=lambda result: sum(test.ok for test in result.tests))
        raise Refused(f'no implementation passes the tests: {closest.report[:500]}')

    async def _first_code(self, order: Order, spec: Specification) -> list[Written]:
        """What independent candidates write first."""
        text = implementation_prompt(
            spec.stub,
            order.language,
            request=order.request,
            examples=order.shown_examples,
            tools=self._helpers(order),
        )
        if self.options.candidates is None and spec.codes:
            asked = Message(role='user', text=text)
            replies = [Message(role='assistant', text=f'```python\n{code}\n```') for code in spec.codes]
            talks = [
                StageConversation(self.model, f'candidate {number}', messages=[asked, reply])
                for number, reply in enumerate(replies, 1)
            ]
            return list(zip(talks, spec.codes, strict=True))
        talks = [
            StageConversation(self.model, f'candidate {number + 1}', temperature=VARIED if number else 0.0)
            for number in range(self.options.candidates or (3 if self.model.traits.small else 2))
        ]
        texts = [text] * len(talks)
        if len(texts) > 1:  # three times the same code would agree about everything
            texts[-1] += prompt('another_way')
        return await self._write_code(talks, texts, order, spec)

    async def _mend_tests(
        self, order: Order, spec: Specification, tests: str, written: Sequence[Written], results: list[Verification]
    ) -> tuple[str, list[Verification]]:
        """Tests without those that all candidates agree against, and what the candidates make of them. If there are too
        many of these tests, new ones are written, and looked at in the same way.

        If all candidates fail the user's examples, the code is wrong, and the tests stay.
        """
        for is_new in (False, True):
            if outliers := outlying_tests(results):
                self._tell('tests', f'dropped, as independent implementations agree against them: {outliers}')
                kept = {key: source for key, source in functions_in(tests).items() if key not in outliers}
                tests = module_with_tests(spec.name, kept)
            elif not is_new and any(passes_examples(result) for result in results):
                tests = await self._write_tests(order, spec, temperature=VARIED)
            else:
                break
            results = await verify_reviewed([self._candidate(order, spec, code, tests) for _, code in written])
            if outliers or any(result.ok for result in results):
                break
        return tests, results

    async def _check_agreement(self, passing: list[Candidate], tests: str) -> None:
        if not self.options.agreement:
            return
        different = list({one.code: one for one in passing}.values())
        calls = calls_in(tests, passing[0].name)
        difference = await find_difference(different, calls, refusals=False)
        if difference is not None:
            results = ' or '.join(result[:80] for result in difference.results)
            msg = f'the request leaves open what {difference.call[:200]} is: {results}? Give it as an example'
            raise Refused(msg)
        if len(different) == 1 and (usual := await only_knows(different[0], calls)):
            raise Refused(f'the code has the inputs of its tests in a table: all other inputs give {usual}')

    async def _red_check(self, order: Order, spec: Specification, tests: str, code: str) -> tuple[str, MutationScore]:
        """Tests that notice most of the mutants of the code, and how many; more are asked for where they do not."""
        if not self.options.red_check:
            return tests, MutationScore()
        make = partial(self._candidate, order, spec, code)
        result = await verify(make(tests))
        request = Message(role='user', text=f'{spec.stub}\n\n{order.request}')
        talk = StageConversation(
            self.model,
            'more tests',
            is_complete=has_enough_tests,
            messages=[request, Message(role='assistant', text=tests)],
        )
        score = MutationScore()
        for attempt in range(TRIES):
            score = await mutation_score(make(tests), seconds=result.seconds)
            self._tell('red check', f'{score.killed} of {score.total} mutants noticed')
            if score.share >= KILL_SHARE:
                return tests, score
            if attempt < TRIES - 1:
                gaps = ''.join(f'- {one}\n' for one in (score.calls or score.survivors)[:10])
                reply = await talk.say(prompt('more_tests').format(gaps=gaps))
                more = usable_tests(spec.stub, read_tests(reply, spec.name), order.language)
                tests = await with_more_tests(make, spec.name, tests, more)
        raise Refused(
            f'the tests notice only {score.killed} of {score.total} wrong variants, such as {score.survivors[0]}'
        )

    async def _register(self, order: Order, spec: Specification, code: str, tests: str, score: MutationScore) -> Built:
        whole = module_with_tests(spec.name, functions_in(tests), order.examples)
        candidate = self._candidate(order, spec, code, whole)
        if spec.name in self.library:  # another build was faster, or this one died after it
            there = self.library.candidate(spec.name)
            if there.language == candidate.language and (await verify(replace(there, tests=candidate.tests))).ok:
                version = self.library.current(spec.name)
                return Built(status='reused', name=spec.name, version=version, reason='built meanwhile')
            candidate = _with_free_name(candidate, self.library)
        result = await verify(candidate)
        if not result.ok:
            raise Refused(result.report)
        try:
            made = self.library.add(
                candidate,
                origin=self.model.name,
                request=order.request,
                tests=len(result.tests),
                mutants=score.total,
                killed=score.killed,
                findings=spec.assumptions + (await review(candidate)).noted,
                context={one.source: one.sha256 for one in order.references},
            )
        except ToolExists:
            return await self._register(order, spec, code, tests, score)
        self._lessons.succeeded(self._lessons.similar_to(order.request))
        self._tell('register', f'{made.name} v{made.version}')
        return Built(status='built', name=made.name, version=made.version)

    async def _learn(self, request: str, reason: str) -> None:
        self._lessons.failed(request, reason, self._lessons.similar_to(request))

    # Use it -----------------------------------------------------------------------------------------------------------

    async def answer(self, request: str, name: str) -> str:
        """Call a tool with arguments taken from the request, and answer in words."""
        return await self._finder.answer(request, name)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _write_code(
        self, talks: Sequence[StageConversation], texts: Sequence[str], order: Order, spec: Specification
    ) -> list[Written]:
        """Ask for code in each conversation, with its text. Each with its answer."""
        work = [self._ask_code(talk, text, order, spec) for talk, text in zip(talks, texts, strict=True)]
        return list(zip(talks, await asyncio.gather(*work), strict=True))

    async def _ask_code(self, talk: StageConversation, text: str, order: Order, spec: Specification) -> str:
        reply = await talk.say(text)
        try:
            code = read_code(reply, spec.name, spec.stub, order.language)
        except (ForgeError, ToolDefinitionError) as error:
            return no_code(spec.name, str(error), order.language)
        if unused := [one for one in order.uses if one not in imported_tools(code)]:
            return no_code(spec.name, f'use `from library import {unused[0]}`', order.language)
        return code

    def _candidate(self, order: Order, spec: Specification, code: str, tests: str) -> Candidate:
        try:
            uses = read_source(spec.name, code, order.language).uses
        except (ForgeError, ToolDefinitionError):
            uses = ()
        known = set(self.library.names())
        return Candidate(
            name=spec.name,
            code=code,
            tests=tests_in(spec.stub, tests, order.language),
            uses={one: self.library.candidate(one) for one in uses if one in known},
            language=order.language,
        )

    def _helpers(self, order: Order) -> str:
        if order.language != 'python':
            return ''
        found = [self.library.manifest(one) for one in order.uses]
        found = found or self.library.search(order.request, limit=3, threshold=0.3)
        found = [one for one in found if self.library.manifest(one.name).language == 'python']
        if not found:
            return ''
        lines = ''.join(f'- from library import {one.name}  # {one.signature}: {one.summary}\n' for one in found)
        rule = (
            'Compose it of these functions, all of which it must call'
            if order.uses
            else 'These functions exist and may be used'
        )
        return f'\n{rule}:\n{lines}'

    def _tell(self, stage: str, text: str) -> None:
        if self._watch is not None:
            self._watch(stage, text)


def _with_free_name(candidate: Candidate, library: Library) -> Candidate:
    """The candidate under a name that no tool has. Raises `Refused` if its language is not Python."""
    if candidate.language != 'python':
        raise Refused(f'another tool {candidate.name!r} was built meanwhile, which does something else')
    name = free_name(candidate.name, library)
    code, tests = (renamed_in(source, {candidate.name: name}) for source in (candidate.code, candidate.tests))
    return replace(candidate, name=name, code=code, tests=tests)


def _check(request: str, examples: Sequence[str], uses: Sequence[str], language: Language | None) -> None:
    """Raise `ForgeError` for a request that no tool can be built for."""
    if not request.strip():
        msg = 'the request is empty: say what the tool is for'
        raise ForgeError(msg)
    if uses and language not in (None, 'python'):
        msg = 'only tools in Python can be composed of others'
        raise ForgeError(msg)
    for example in examples:
        read_example(example)
