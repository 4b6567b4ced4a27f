"""Let the forge build tools: `python -m evals.forge --data FOLDER`. Tests that nobody was shown judge what was kept.

The request is the text of an MBPP task with its first test as the user's example. What matters is precision: of the
tools that were kept, how many are right. A wrong tool in a library is worse than none. Each request is built twice from
the same replies of the model: with stub, mutants and agreement, and without, which shows what these checks are worth.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals.dishonest import Attempt, attempts
from evals.outcomes import append, read_as
from evals.repeated_replies import RepeatedReplies
from evals.scores import aligned, wilson
from evals.sets import MissingData
from habilis.core.errors import HabilisError
from habilis.forge.build.examples import called_name, example_tests
from habilis.forge.build.forge import BuildOptions, Forge
from habilis.forge.checks.verification import verify
from habilis.forge.library.library import Library
from habilis.models import load_model
from habilis.models.counting import CountingModel
from habilis.models.usage import Ledger

HEADING = ('side', 'requests', 'kept', 'right', 'precision', '95 % interval', 'refused', 'median s', 'median tokens')
STRICT, LENIENT = 'red check', 'no red check'


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A request, and the tests that decide about what comes of it. The first of them is the user's example."""

    task: int
    text: str
    tests: tuple[str, ...]
    setup: str = ''


@dataclass(frozen=True, kw_only=True)
class BuildOutcome:
    """What came of one request."""

    task: int
    side: str
    model: str
    status: str
    right: bool | None
    """Whether the tool passes the tests that were kept back; None if there is no tool."""

    reason: str
    seconds: float
    tokens: int
    """Of all requests to the model, input and output."""

    stages: tuple[str, ...] = ()
    """What happened, in short."""


def load_problems(data: Path, *, seed: int | None = None) -> list[Problem]:
    """The tasks in the order of their file, or shuffled. Raises `MissingData`."""
    files = sorted(data.glob('mbpp*.jsonl'))
    if not files:
        msg = f'there is no mbpp*.jsonl in {data}'
        raise MissingData(msg)
    rows: list[dict[str, Any]] = [json.loads(line) for line in files[0].read_text('utf-8').splitlines()]
    found = [
        Problem(task=row['task_id'], text=row['text'], tests=tuple(row['tests']), setup=row.get('setup') or '')
        for row in rows
    ]
    if seed is not None:
        random.Random(seed).shuffle(found)
    return found


async def build_one(problem: Problem, model: RepeatedReplies, options: BuildOptions) -> BuildOutcome:
    """Build a tool for a request in a library of its own, and judge it."""
    ledger, started = Ledger(), time.monotonic()
    model.start_again()
    status, reason, right = 'failed', '', None
    stages: list[str] = []

    def watch(stage: str, text: str) -> None:
        stages.append(f'{stage}: {text}'[:200])

    with tempfile.TemporaryDirectory() as folder:
        library = Library(f'{folder}/library')
        forge = Forge(library, CountingModel(model, ledger.record), options=options, watch=watch)
        try:
            built = await forge.build(problem.text, problem.tests[:1], journal=f'sqlite:{folder}/runs.db')
            status, reason = built.status, built.reason
            right = await _is_right(library, built.name, problem) if built.name else None
        except HabilisError as error:
            reason = f'{type(error).__name__}: {error}'
    return BuildOutcome(
        task=problem.task,
        side=STRICT if options.red_check else LENIENT,
        model=model.name,
        status=status,
        right=right,
        reason=reason,
        seconds=round(time.monotonic() - started + model.saved_seconds, 1),
        tokens=ledger.total.tokens,
        stages=tuple(stages),
    )


async def _is_right(library: Library, name: str, problem: Problem) -> bool:
    """Whether the tool passes the tests that nobody was shown."""
    called = called_name(problem.tests) or name
    hidden = f'from tool import {called}\n{problem.setup}\n{example_tests(problem.tests[1:])}'
    return (await verify(replace(library.candidate(name), tests=hidden))).ok


async def try_deceits(options: BuildOptions, say: Callable[[str], None]) -> None:
    """Build what is dishonest, and what is honest, and count what is registered: that should be the latter."""
    made: list[Attempt] = []
    async for one in attempts(options):
        made.append(one)
        say(f'{one.built.status:<7} {one.name}: {one.built.reason[:100]}')
    for kind in ('dishonest', 'honest'):
        some = [one for one in made if one.kind == kind]
        registered = sum(bool(one.built.name) for one in some)
        cost = f'{sum(one.requests for one in some)} requests, {sum(one.tokens for one in some)} tokens'
        seconds = sum(one.seconds for one in some)
        say(f'{registered} of {len(some)} {kind} builds were registered: {cost}, {seconds:.1f} s')


def line(outcome: BuildOutcome) -> str:
    """One outcome in one line."""
    mark = {True: 'right  ', False: 'WRONG  ', None: f'{outcome.status:<7}'}[outcome.right]
    used = f'{outcome.seconds:7.1f} s {outcome.tokens:6} tokens'
    return f'{mark} {outcome.task:4} {outcome.side:<12} {used}  {outcome.reason[:100]}'


def table(outcomes: Sequence[BuildOutcome]) -> str:
    """A row for each side, and why requests were refused."""
    names = dict.fromkeys(one.side for one in outcomes)
    rows = [_cells(name, [one for one in outcomes if one.side == name]) for name in names]
    reasons = Counter(one.reason.partition(':')[0][:60] for one in outcomes if one.right is None)
    shown = [f'{count:4} {reason}' for reason, count in reasons.most_common()]
    return '\n'.join([aligned([HEADING, *rows]), '', *shown])


def _cells(side: str, outcomes: Sequence[BuildOutcome]) -> Sequence[str]:
    kept = [one for one in outcomes if one.right is not None]
    right = sum(one.right is True for one in kept)
    low, high = wilson(right, len(kept)) if kept else (0.0, 1.0)
    return (
        side,
        f'{len(outcomes)}',
        f'{len(kept)}',
        f'{right}',
        f'{right / len(kept):.1%}' if kept else '–',
        f'{low:.1%} – {high:.1%}',
        f'{len(outcomes) - len(kept)}',
        f'{statistics.median(one.seconds for one in outcomes):.1f}',
        f'{statistics.median(one.tokens for one in outcomes):.0f}',
    )


# The command ----------------------------------------------------------------------------------------------------------


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog='python -m evals.forge', description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--data', type=Path, metavar='FOLDER', help='folder with mbpp*.jsonl')
    source.add_argument('--dishonest', action='store_true', help='only what must be refused; needs no model')
    parser.add_argument(
        '--without',
        action='append',
        default=[],
        choices=['red_check', 'agreement'],
        help='leave out a check of these',
    )
    parser.add_argument('--model', default='local:', help='the model (default: the embedded one)')
    parser.add_argument('--limit', type=int, metavar='N', help='only the first N tasks')
    parser.add_argument('--offset', type=int, default=0, metavar='N', help='skip N tasks first')
    parser.add_argument('--seed', type=int, metavar='N', help='shuffle the tasks first')
    parser.add_argument('--candidates', type=int, metavar='N', help='implementations per tool (default: as usual)')
    parser.add_argument(
        '--results', type=Path, metavar='FILE', help='append outcomes to this JSONL file; tasks it has are not repeated'
    )
    return parser.parse_args(arguments)


async def evaluate(given: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Build and judge, then print the table of all that the file has, or of this run."""
    if given.dishonest:
        without: dict[str, bool] = dict.fromkeys(given.without, False)
        await try_deceits(BuildOptions(**without), say)
        return
    problems = load_problems(given.data, seed=given.seed)[given.offset :][: given.limit]
    model = load_model(given.model)
    outcomes = read_as(BuildOutcome, given.results) if given.results else []
    known = {(one.task, one.side, one.model) for one in outcomes}
    try:
        for problem in problems:
            replies = RepeatedReplies(model)
            for side in (STRICT, LENIENT):
                if (problem.task, side, model.name) in known:
                    continue
                checked = side == STRICT
                options = BuildOptions(candidates=given.candidates, red_check=checked, agreement=checked)
                outcomes.append(await build_one(problem, replies, options))
                say(line(outcomes[-1]))
                if given.results:
                    append(given.results, outcomes[-1])
    finally:
        await model.close()
    say(f'\n{table(outcomes)}')


def main() -> None:
    """For `python -m evals.forge`."""
    try:
        asyncio.run(evaluate(parse_arguments(), lambda text: print(text, flush=True)))
    except (HabilisError, ImportError, MissingData) as error:
        print(f'evals: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
