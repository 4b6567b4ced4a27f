"""Finds a tool of the library that does what is asked for.

A model that is asked whether a tool fits says yes too easily: one for the opposite direction has the right words. So a
request with values is solved twice, by a call of the tool and by code that the model writes without knowing the tool.
The tool is reused only if both give the same.
"""

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from habilis.core.errors import ForgeError, ModelError, ToolCallError
from habilis.core.limits import Limits
from habilis.core.syntax import parse_module
from habilis.forge.build.examples import called_name, module_with_tests
from habilis.forge.build.languages import tests_in
from habilis.forge.build.requests import StageConversation, code_block, literal_call, prompt, without_body
from habilis.forge.checks.calls import call_candidate
from habilis.forge.checks.verification import verify
from habilis.forge.contract import Candidate, Language
from habilis.forge.library.library import Library
from habilis.forge.library.source_edits import renamed_in
from habilis.forge.source import definition_of
from habilis.models.contract import Model
from habilis.sandbox import Sandbox
from habilis.tools.search_index import FoundTool, has_values

TRIED = 3
"""Tools that are called, the best first."""

SOLUTIONS = 3
"""Codes of the model that are compared with them; all but the first with this temperature."""

VARIED = 0.7
SHOWN_EXAMPLES = 2
ROUNDING = 1e-3
LIMITS = Limits(seconds=10, memory_mb=256)
THRESHOLD = 0.1


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool with arguments taken from a request, and its result."""

    code: str
    result: object


class Finder:
    """Finds tools for requests, and answers requests with them."""

    def __init__(self, library: Library, model: Model) -> None:
        self._library = library
        self._model = model

    async def find(self, request: str, examples: Sequence[str], language: Language | None = None) -> str:
        """Name of a tool that does what is asked for, in this language if one is given; empty if there is none."""
        wanted = called_name(examples)
        if wanted in self._library:  # the examples name the function and decide, whatever the words say
            return wanted if self._is_in(wanted, language) and await self._fulfils(wanted, examples) else ''
        query = f'{request} {wanted.replace("_", " ")}'
        found = [
            one for one in self._library.search(query, limit=5, threshold=THRESHOLD) if self._is_in(one.name, language)
        ]
        if examples:
            found = [one for one in found if wanted and await self._fulfils(one.name, examples, wanted)]
        if examples or not has_values(request):
            return await self._choose(request, found) if found else ''
        calls = [(one, made) for one in found[:TRIED] if (made := await self._try(request, one.name)) is not None]
        for number in range(SOLUTIONS if calls else 0):
            own = await self._compute(request, number)
            for one, made in calls:
                if is_same(made.result, own) and await self._is_answer(request, one, made):
                    return one.name
        return ''

    async def answer(self, request: str, name: str) -> str:
        """Call a tool with arguments taken from the request, and answer in words."""
        made = await self._call(request, name)
        shown = str(made.result)
        try:
            said = await self._ask('words', request=request, result=made.result)
        except ModelError:  # the result is there
            return shown
        return said.strip() if shown in said else shown

    async def _fulfils(self, name: str, examples: Sequence[str], wanted: str = '') -> bool:
        """Whether a tool of the library fulfils the examples, in which it may be called as it was wanted."""
        candidate = self._library.candidate(name)
        examples = [renamed_in(example, {wanted: name}) for example in examples]
        stub = ast.unparse(definition_of(candidate))
        tests = tests_in(stub, module_with_tests(name, {}, examples), candidate.language)
        return (await verify(replace(candidate, tests=tests))).ok

    def _is_in(self, name: str, language: Language | None) -> bool:
        return language is None or self._library.manifest(name).language == language

    async def _compute(self, request: str, number: int) -> object:
        """The answer by code that the model writes for this request alone; None if there is none."""
        temperature = VARIED if number else None
        code = code_block(await self._ask('compute', temperature, request=request))
        async with await Sandbox.create(limits=LIMITS, checkpoints=False) as sandbox:
            cell = await sandbox.run(f'{code}\nanswer')
        return cell.value if cell.ok else None

    async def _try(self, request: str, name: str) -> Call | None:
        """A call of the tool; None if the model finds none, or if it fails."""
        try:
            return await self._call(request, name)
        except (ForgeError, ToolCallError):
            return None

    async def _is_answer(self, request: str, tool: FoundTool, made: Call) -> bool:
        """Whether the model finds the call to be what was asked for."""
        shown = repr(made.result)[:500]
        said = await self._ask('confirm_call', request=request, call=made.code, result=shown, summary=tool.summary)
        return _is_yes(said)

    async def _choose(self, request: str, found: Sequence[FoundTool]) -> str:
        """The tool that does what is asked for, by its description."""
        shown = '\n'.join(f'- {one.signature}: {one.summary}' for one in found)
        reply = await self._ask('choose', request=request, tools=shown)
        chosen = next((one for one in found if re.search(rf'\b{one.name}\b', reply)), None)
        if chosen is None:
            return ''
        if not self._model.traits.small:
            return chosen.name
        tool = f'{chosen.signature}: {chosen.summary}'  # a small model names a tool too easily
        return chosen.name if _is_yes(await self._ask('confirm', request=request, tool=tool)) else ''

    async def _call(self, request: str, name: str) -> Call:
        """Call a tool with arguments taken from the request."""
        candidate = self._library.candidate(name)
        examples = '\n'.join(example_calls(candidate))
        reply = await self._ask(
            'call',
            request=request,
            stub=without_body(ast.unparse(definition_of(candidate))),
            examples=f'For example:\n\n```python\n{examples}\n```\n\n' if examples else '',
            name=name,
        )
        code = code_block(reply)
        args, kwargs = literal_call(code, name)
        return Call(code=code.strip(), result=await call_candidate(candidate, args, kwargs))

    async def _ask(self, label: str, temperature: float | None = None, **values: object) -> str:
        talk = StageConversation(self._model, label.replace('_', ' '), temperature=temperature)
        return await talk.say(prompt(label).format(**values))


def example_calls(candidate: Candidate) -> list[str]:
    """The first calls with their results that the tests of a tool assert."""
    try:
        nodes = list(ast.walk(parse_module(candidate.tests)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = [
        ast.unparse(test)
        for node in nodes
        if isinstance(node, ast.Assert)
        and isinstance(test := node.test, ast.Compare)
        and isinstance(call := test.left, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == candidate.name
    ]
    return found[:SHOWN_EXAMPLES]


def is_same(one: object, other: object) -> bool:
    """Whether two results say the same: numbers may be rounded, texts may differ in case."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case (int() | float(), int() | float()):
            return math.isclose(one, other, rel_tol=ROUNDING)
        case str(), str():
            return one.strip().casefold() == other.strip().casefold()
        case (list() | tuple(), list() | tuple()):
            items = cast('Sequence[object]', one), cast('Sequence[object]', other)
            return len(items[0]) == len(items[1]) and all(is_same(*pair) for pair in zip(*items, strict=True))
        case _:
            return one == other


def _is_yes(reply: str) -> bool:
    return re.match(r'\W*yes\b', reply, re.IGNORECASE) is not None
