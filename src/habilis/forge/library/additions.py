"""Adds a tool that a person wrote: tested in the sandbox, with tests that notice wrong code."""

import ast
from dataclasses import replace

from habilis.core.errors import ForgeError, ToolExists
from habilis.core.syntax import parse_module
from habilis.forge.checks.mutation import KILL_SHARE, mutation_score
from habilis.forge.checks.review import review
from habilis.forge.checks.verification import passes_when_wrong, verify
from habilis.forge.contract import Candidate, Manifest
from habilis.forge.library.library import Library
from habilis.forge.source import read_source


def function_name(code: str, preferred: str = '') -> str:
    """The function of a file: the one named as preferred, or the only public one. Raises `ForgeError`."""
    try:
        body = parse_module(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f'the code is not Python: {error}'
        raise ForgeError(msg) from error
    names = [node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith('_')]
    if preferred in names:
        return preferred
    if len(names) != 1:
        found = f'the code has {", ".join(names)}' if names else 'the code has no public function'
        msg = f'{found}: a tool is one function; begin the names of others with _, or name the file as the tool'
        raise ForgeError(msg)
    return names[0]


async def add_tool(
    library: Library, candidate: Candidate, *, note: str = '', origin: str = 'user', request: str = ''
) -> Manifest:
    """Keep code and tests that no build made as a new tool. What it imports from `library` is taken from there.

    Raises `ToolExists`, or `ForgeError` if its tests fail, or pass on an obviously wrong function, or notice fewer
    than 80 % of wrong variants of the code and no `note` says why that is enough.
    """
    name = candidate.name
    read_source(name, candidate.code, candidate.language)
    if name in library:
        msg = f'there is already a tool {name!r}; make a new version of it with: habilis tools edit {name} FILE'
        raise ToolExists(msg)
    new = replace(candidate, uses=library.uses_of(candidate.code, name, candidate.language))
    passed = await verify(new)
    if not passed.ok:
        msg = f'the tests of {name} fail:\n{passed.report}'
        raise ForgeError(msg)
    if wrong := await passes_when_wrong(new):
        msg = f'the tests of {name} pass on a function that {wrong}, so they prove nothing'
        raise ForgeError(msg)
    score = await mutation_score(new, seconds=passed.seconds)
    if score.share < KILL_SHARE and not note:
        missed = ''.join(f'\n  {change}' for change in score.survivors[:5])
        msg = (
            f'the tests of {name} notice only {score.killed} of {score.total} wrong variants of the code; '
            f'add tests that fail on these, or say with --note REASON why they are enough:{missed}'
        )
        raise ForgeError(msg)
    found = await review(new)
    return library.add(
        new,
        origin=origin,
        request=request,
        note=note,
        tests=len(passed.tests),
        mutants=score.total,
        killed=score.killed,
        findings=found.refused + found.noted,  # a person decides what to do about them
    )
