"""Does a library of tools help? `python -m evals.library`: families of related requests, with a library and without.

Both sides have the same model, and the same token budget per request; with a library, tokens of builds count. The
library is empty at first (or has the seeds) and is kept over all families. The sides take turns, request by request.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.outcomes import append, read_as
from evals.scores import aligned, wilson
from evals.sets import KINDS
from evals.tasks import Task
from habilis import Agent, HabilisError, RunLimits
from habilis.core.settings import Settings
from habilis.forge.library.checkup import check_library
from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seed
from habilis.models import Model, load_model

STEPS, TOKENS = 12, 60_000
WITH, WITHOUT = 'library', 'no library'
HEADING = ('side', 'requests', 'right', 'rate', '95 % interval', 'median tokens', 'mean tokens', 'median s', 'reused')


@dataclass(frozen=True, kw_only=True)
class RequestOutcome:
    """One request, as one side answered it."""

    family: str
    request: int
    side: str
    model: str
    right: bool
    answer: str
    tokens: int
    """Input and output, builds included."""

    seconds: float
    steps: int = 0
    reused: tuple[str, ...] = ()
    """Tools that were called, and had been in the library before."""

    built: tuple[str, ...] = ()


def load_families() -> dict[str, list[Task]]:
    """The requests of each family, in order."""
    rows = tomllib.loads(Path(__file__).with_name('families.toml').read_text('utf-8'))['family']
    return {
        row['name']: [
            Task(
                id=f'{row["name"]}-{number}',
                set=row['name'],
                category=row['name'],
                text=f'{row["rule"]} {request["text"]}',
                expected=request['expected'],
                kind=KINDS[request['kind']],
            )
            for number, request in enumerate(row['request'], 1)
        ]
        for row in rows
    }


async def answer(task: Task, number: int, model: Model, library: Library | None, limits: RunLimits) -> RequestOutcome:
    """Let a new agent answer a request."""
    before = set(library.names()) if library else set[str]()
    started, right, shown, tokens, steps = time.monotonic(), False, '', 0, 0
    called: list[str] = []
    async with Agent(
        model, output_type=task.kind, library=library, limits=limits, settings=Settings(), journal='off'
    ) as agent:
        try:
            result = await agent.run(task.text)
        except HabilisError as error:
            shown = f'{type(error).__name__}: {error}'
        else:
            shown = repr(result.output) if result.ended == 'answer' else result.ended
            right = result.ended == 'answer' and task.accepts(result.output)
            tokens, steps = result.usage.tokens, len(result.steps)
            called = [call.tool for step in result.steps for call in step.calls if call.ok]
    return RequestOutcome(
        family=task.set,
        request=number,
        side=WITH if library else WITHOUT,
        model=model.name,
        right=right,
        answer=shown[:200],
        tokens=tokens,
        seconds=round(time.monotonic() - started, 1),
        steps=steps,
        reused=tuple(dict.fromkeys(name for name in called if name in before)),
        built=tuple(sorted(set(library.names()) - before)) if library else (),
    )


def line(outcome: RequestOutcome) -> str:
    """One outcome in one line."""
    mark, name = 'ok  ' if outcome.right else 'FAIL', f'{outcome.family}-{outcome.request}'
    used = f'{outcome.seconds:7.1f} s {outcome.tokens:6} tokens'
    tools = [f'reused {one}' for one in outcome.reused] + [f'built {one}' for one in outcome.built]
    return f'{mark} {outcome.side:<10} {name:<16} {used}  {", ".join([outcome.answer[:60], *tools])}'


def table(outcomes: Sequence[RequestOutcome]) -> str:
    """A row for each side; reuse counts requests after the first of their family."""
    rows: list[Sequence[str]] = [HEADING]
    for side in dict.fromkeys(one.side for one in outcomes):
        done = [one for one in outcomes if one.side == side]
        right, later = sum(one.right for one in done), [one for one in done if one.request > 1]
        low, high = wilson(right, len(done))
        rows.append(
            (
                side,
                f'{len(done)}',
                f'{right}',
                f'{right / len(done):.1%}',
                f'{low:.1%} – {high:.1%}',
                f'{statistics.median(one.tokens for one in done):.0f}',
                f'{statistics.fmean(one.tokens for one in done):.0f}',
                f'{statistics.median(one.seconds for one in done):.1f}',
                f'{sum(bool(one.reused) for one in later)}/{len(later)}',
            )
        )
    return aligned(rows)


def pairs(outcomes: Sequence[RequestOutcome]) -> str:
    """Requests that only one of the sides answered right."""
    found = {(one.family, one.request, one.side): one.right for one in outcomes}
    both = [key[:2] for key in found if key[2] == WITH and (*key[:2], WITHOUT) in found]
    gains = [key for key in both if found[*key, WITH] and not found[*key, WITHOUT]]
    losses = [key for key in both if found[*key, WITHOUT] and not found[*key, WITH]]
    named = [', '.join(f'{family}-{number}' for family, number in keys) or 'none' for keys in (gains, losses)]
    return f'right with the library only: {named[0]}\nright without it only: {named[1]}'


def duplicates(library: Library) -> list[str]:
    """Tools that seem to do what another one does."""
    return [f'{problem.tool}: {problem.what}' for problem in check_library(library) if not problem.is_error]


# The command ----------------------------------------------------------------------------------------------------------


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog='python -m evals.library', description=__doc__)
    parser.add_argument('--model', default='local:', help='the model (default: the embedded one)')
    parser.add_argument('--limit', type=int, metavar='N', help='only the first N families')
    parser.add_argument('--tokens', type=int, default=TOKENS, metavar='N', help=f'per request (default: {TOKENS})')
    parser.add_argument('--seconds', type=float, default=900.0, metavar='N', help='per request (default: 900)')
    parser.add_argument('--seeds', action='store_true', help='begin with the tools that come with Habilis')
    parser.add_argument(
        '--folder', type=Path, metavar='DIR', help='keep outcomes and library here; a second run continues'
    )
    return parser.parse_args(arguments)


async def evaluate(given: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> None:
    """Answer all requests with both sides, then print what the folder has."""
    library, results, model = Library(folder / 'library'), folder / 'results.jsonl', load_model(given.model)
    if given.seeds:
        await seed(library)
    limits = RunLimits(steps=STEPS, tokens=given.tokens, seconds=given.seconds)
    outcomes = read_as(RequestOutcome, results)
    known = {(one.family, one.request, one.side) for one in outcomes}
    try:
        for name, tasks in list(load_families().items())[: given.limit]:
            for number, task in enumerate(tasks, 1):
                for side, used in ((WITHOUT, None), (WITH, library)):
                    if (name, number, side) not in known:
                        outcomes.append(await answer(task, number, model, used, limits))
                        append(results, outcomes[-1])
                        say(line(outcomes[-1]))
    finally:
        await model.close()
    twice = duplicates(library)
    say(f'\n{table(outcomes)}\n\n{pairs(outcomes)}\ntools in the library: {len(library.names())}')
    say('\n'.join([f'duplicates: {len(twice)}', *twice]))


def main() -> None:
    """For `python -m evals.library`."""
    given = parse_arguments()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = given.folder or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            asyncio.run(evaluate(given, folder, lambda text: print(text, flush=True)))
    except (HabilisError, ImportError) as error:
        print(f'evals: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
