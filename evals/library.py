"""Does a library of tools help? `python -m evals.library`: families of related requests, with a library and without.

All sides have the same model, and the same token budget per request; with a library, tokens of builds count. The
library is empty at first (or has the seeds) and is kept over all families. A third side has a library of kept runs:
what it has answered right with code of its own is kept, as by `habilis runs keep`. The sides take turns.
"""

import argparse
import ast
import asyncio
import builtins
import contextlib
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evals.outcomes import append, read_as
from evals.scores import aligned, wilson
from evals.sets import KINDS
from evals.tasks import Task
from habilis import Agent, HabilisError, Result, RunLimits
from habilis.cli.runs.keep import read_finished
from habilis.core.errors import ForgeError
from habilis.core.settings import Settings
from habilis.forge.build.kept_runs import keep_runs
from habilis.forge.library.checkup import check_library
from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seed
from habilis.journal import Store
from habilis.journal.runs import read_run
from habilis.journal.stores.urls import open_store
from habilis.models import Model, load_model

STEPS, TOKENS = 12, 60_000
WITH, WITHOUT, KEPT = 'library', 'no library', 'kept runs'
NOTE = 'the answer is right'
"""What a user says who keeps a run."""

HEADING = (
    'side',
    'requests',
    'right',
    'rate',
    '95 % interval',
    'median tokens',
    'mean tokens',
    'output tokens',
    'median s',
    'reused',
    'only called',
)


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

    output_tokens: int = 0
    seconds: float
    steps: int = 0
    reused: tuple[str, ...] = ()
    """Tools that were called, and had been in the library before."""

    only_called: bool = False
    """Whether all its code was calls of such tools: the model wrote no program."""

    built: tuple[str, ...] = ()
    """Tools that were built or kept."""


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


async def answer(
    task: Task, number: int, model: Model, side: str, library: Library | None, limits: RunLimits, store: Store
) -> RequestOutcome:
    """Let a new agent answer a request, and keep the run if that is the side."""
    before = set(library.names()) if library else set[str]()
    outcome = RequestOutcome(
        family=task.set, request=number, side=side, model=model.name, right=False, answer='', tokens=0, seconds=0.0
    )
    started = time.monotonic()
    async with Agent(
        model, output_type=task.kind, library=library, limits=limits, settings=Settings(), journal=store
    ) as agent:
        try:
            result = await agent.run(task.text)
        except HabilisError as error:
            outcome = replace(outcome, answer=f'{type(error).__name__}: {error}'[:200])
        else:
            outcome = _judged(outcome, task, result, before)
            if side == KEPT and library and outcome.right and not outcome.reused:
                with contextlib.suppress(ForgeError):  # its code has nothing that varies, or cannot be a tool
                    await keep_runs(library, [await read_finished(await read_run(store, result.run_id))], note=NOTE)
    built = tuple(sorted(set(library.names()) - before)) if library else ()
    return replace(outcome, built=built, seconds=round(time.monotonic() - started, 1))


def _judged(outcome: RequestOutcome, task: Task, result: Result[object], before: Collection[str]) -> RequestOutcome:
    has_answer = result.ended == 'answer'
    called = [call.tool for step in result.steps for call in step.calls if call.ok and call.tool in before]
    codes = [step.code for step in result.steps if step.code]
    return replace(
        outcome,
        right=has_answer and task.accepts(result.output),
        answer=repr(result.output)[:200] if has_answer else result.ended,
        tokens=result.usage.tokens,
        output_tokens=result.usage.output_tokens,
        steps=len(result.steps),
        reused=tuple(dict.fromkeys(called)),
        only_called=bool(called) and all(_only_calls(code, {*before, 'final_answer'}) for code in codes),
    )


def _only_calls(code: str, names: Collection[str]) -> bool:
    """Whether code is expressions of literals, these names and built-in functions: it has no variables and no loops."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return False
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return all(isinstance(node, ast.Expr) for node in tree.body) and used <= {*names, *dir(builtins)}


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
                f'{sum(one.output_tokens for one in done)}',
                f'{statistics.median(one.seconds for one in done):.1f}',
                f'{sum(bool(one.reused) for one in later)}/{len(later)}',
                f'{sum(one.only_called for one in later)}/{len(later)}',
            )
        )
    return aligned(rows)


def pairs(outcomes: Sequence[RequestOutcome], side: str) -> str:
    """Requests that only this side answered right, or only the one without a library."""
    found = {(one.family, one.request, one.side): one.right for one in outcomes}
    both = [key[:2] for key in found if key[2] == side and (*key[:2], WITHOUT) in found]
    gains = [key for key in both if found[*key, side] and not found[*key, WITHOUT]]
    losses = [key for key in both if found[*key, WITHOUT] and not found[*key, side]]
    named = [', '.join(f'{family}-{number}' for family, number in keys) or 'none' for keys in (gains, losses)]
    return f'right with {side} only: {named[0]}\nright without only: {named[1]}'


def duplicates(library: Library) -> list[str]:
    """Tools that seem to do what another one does."""
    return [f'{problem.tool}: {problem.what}' for problem in check_library(library) if not problem.is_error]


# The command ----------------------------------------------------------------------------------------------------------


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog='python -m evals.library', description=__doc__)
    parser.add_argument('--model', default='local:', help='the model (default: the embedded one)')
    parser.add_argument('--limit', type=int, metavar='N', help='only the first N families')
    parser.add_argument('--side', action='append', dest='sides', choices=[WITHOUT, WITH, KEPT], help='only this side')
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
    sides = {WITHOUT: None, WITH: library, KEPT: Library(folder / 'kept')}
    store = open_store(f'sqlite:{folder / "runs.db"}')
    if given.seeds:
        await seed(library)
    limits = RunLimits(steps=STEPS, tokens=given.tokens, seconds=given.seconds)
    outcomes = read_as(RequestOutcome, results)
    known = {(one.family, one.request, one.side) for one in outcomes}
    try:
        for name, tasks in list(load_families().items())[: given.limit]:
            for number, task in enumerate(tasks, 1):
                for side in given.sides or sides:
                    if (name, number, side) not in known:
                        outcomes.append(await answer(task, number, model, side, sides[side], limits, store))
                        append(results, outcomes[-1])
                        say(line(outcomes[-1]))
    finally:
        await model.close()
        await store.close()
    twice = duplicates(library)
    say(f'\n{table(outcomes)}\n\n{pairs(outcomes, WITH)}\n{pairs(outcomes, KEPT)}')
    say(f'tools in the library: {len(library.names())}')
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
