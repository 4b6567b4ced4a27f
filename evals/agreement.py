"""Does agreement find bugs that tests do not notice? `python -m evals.agreement`: right and wrong code, many inputs.

Without `--data`, the bugs are mutants of the tools that come with Habilis which pass the first half of the tests and
fail the others: bugs for certain, which the tests that are left do not notice. Needs no model.

`--data FOLDER` reads `*.jsonl` files, such as programs of QuixBugs in this form, with one JSON object per line: `name`
of the function, its code as `right` and as `wrong`, and `tests`, a list of conditions that both fulfil.
"""

import argparse
import ast
import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from habilis.forge.build.examples import module_with_tests
from habilis.forge.checks.agreement import find_difference, outcomes_of
from habilis.forge.checks.inputs import calls_in, near_inputs
from habilis.forge.checks.mutants import mutants
from habilis.forge.checks.verification import verify_all
from habilis.forge.contract import Candidate
from habilis.forge.library.seed_tools import seeds

MUTANTS = 12
"""Of one tool."""

INPUTS = 25


@dataclass(frozen=True, kw_only=True)
class Bug:
    """Right code, with tests that do not notice that the other is wrong."""

    what: str
    right: Candidate
    wrong: Candidate


def load_bugs(folder: Path) -> list[Bug]:
    """The bugs of a folder."""
    rows = [
        json.loads(line) for file in sorted(folder.glob('*.jsonl')) for line in file.read_text('utf-8').splitlines()
    ]
    return [
        Bug(what=row['name'], **{side: _candidate(row['name'], row[side], row['tests']) for side in ('right', 'wrong')})
        for row in rows
    ]


def _candidate(name: str, code: str, tests: Sequence[str]) -> Candidate:
    return Candidate(name=name, code=code, tests=module_with_tests(name, {}, tests))


async def seed_bugs(limit: int | None) -> AsyncGenerator[Bug]:
    """The bugs that are made of the first tools that come with Habilis."""
    for name, seed in list(seeds().items())[:limit]:
        few = replace(seed, tests=_first_half(seed.tests))
        made = mutants(seed.code, limit=MUTANTS)
        unnoticed = [replace(few, code=one.code) for one in made]
        passing = [one for one in zip(made, await verify_all(unnoticed, stop=True), strict=True) if one[1].ok]
        whole = await verify_all([replace(seed, code=mutant.code) for mutant, _ in passing], stop=True)
        for (mutant, _), result in zip(passing, whole, strict=True):
            if not result.ok:
                yield Bug(what=f'{name}, {mutant.change}', right=few, wrong=replace(few, code=mutant.code))


def _first_half(tests: str) -> str:
    tree = ast.parse(tests)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith('test')]
    tree.body = [node for node in tree.body if node not in found[len(found) // 2 :]]
    return ast.unparse(tree)


async def is_found(bug: Bug) -> tuple[bool, bool]:
    """Whether the difference shows on inputs near those of the tests, and on all inputs that a build compares."""
    calls = calls_in(bug.right.tests, bug.right.name)
    inputs = near_inputs(bug.right, calls, count=INPUTS)
    near = await outcomes_of(bug.right, inputs) != await outcomes_of(bug.wrong, inputs)
    return near, await find_difference([bug.right, bug.wrong], calls, count=INPUTS, refusals=False) is not None


async def evaluate(given: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Look for all bugs, and count those that are found."""
    bugs = load_bugs(given.data) if given.data else [bug async for bug in seed_bugs(given.limit)]
    results = [await is_found(bug) for bug in bugs]
    for bug, (_, found) in zip(bugs, results, strict=True):
        if not found:
            say(f'missed {bug.what}')
    near, found = (sum(one[column] for one in results) for column in (0, 1))
    say(f'{found} of {len(bugs)} bugs that the tests do not notice are found: {near} near the tests, others by types')


def main() -> None:
    """For `python -m evals.agreement`."""
    parser = argparse.ArgumentParser(prog='python -m evals.agreement', description=__doc__)
    parser.add_argument('--data', type=Path, metavar='FOLDER', help='folder with *.jsonl')
    parser.add_argument('--limit', type=int, metavar='N', help='only the first N tools that come with Habilis')
    asyncio.run(evaluate(parser.parse_args(), lambda text: print(text, flush=True)))


if __name__ == '__main__':
    main()
