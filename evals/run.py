"""Let one side solve sets of tasks: `python -m evals.run --help`. Exit code 2 if it could not be tried."""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals import bare_side, habilis_side, outcomes, scores
from evals.outcomes import Outcome
from evals.server import NoServer, model_server, served_model
from evals.sets import PUBLIC, SETS, MissingData, load_set
from evals.smolagents_side import Order, unsolved
from evals.tasks import Task
from habilis import HabilisError, ModelConfig
from habilis.models import Message, Model, Options, load_model

SECONDS = 300.0
"""Default time limit of one task; a machine without a GPU needs most of it for a long reply."""

START_SECONDS = 60.0
"""Extra time for another Python to start and to import its framework."""

ROOT = Path(__file__).parents[1]
Solve = Callable[[Task], Awaitable[Outcome]]
Say = Callable[[str], None]


class UsageError(Exception):
    """The arguments make no sense."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of the command line."""

    sets: Sequence[str]
    side: str
    model: str
    url: str | None
    python: str
    data: Path | None
    limit: int | None
    offset: int
    only: str | None
    seconds: float
    results: Path | None


def parse_arguments(arguments: Sequence[str] | None = None) -> Arguments:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog='python -m evals.run', description='Let one side solve sets of tasks.')
    parser.add_argument('sets', nargs='*', metavar='SET', help=f'{", ".join(SETS)} (default: all)')
    parser.add_argument('--side', choices=['habilis', 'bare', 'smolagents'], default='habilis', help='what solves them')
    parser.add_argument('--model', default='local:', help='the model (default: the embedded one)')
    parser.add_argument('--url', help='an OpenAI-compatible server, instead of --model')
    parser.add_argument('--python', default=sys.executable, metavar='PATH', help='the Python that has smolagents')
    parser.add_argument('--data', type=Path, metavar='FOLDER', help='folder with gsm8k*.jsonl and mbpp*.jsonl')
    parser.add_argument('--limit', type=int, metavar='N', help='only the first N tasks of each set')
    parser.add_argument('--offset', type=int, default=0, metavar='N', help='skip N tasks of each set first')
    parser.add_argument('--only', metavar='NAMES', help='only these tasks or categories, separated by commas')
    parser.add_argument('--seconds', type=float, default=SECONDS, help=f'time limit per task (default: {SECONDS:g})')
    parser.add_argument(
        '--results', type=Path, metavar='FILE', help='append outcomes to this JSONL file; tasks it has are not repeated'
    )
    return Arguments(**vars(parser.parse_args(arguments)))


def select_tasks(arguments: Arguments, say: Say) -> list[Task]:
    """The tasks asked for, set by set. Raises `UsageError` and `MissingData`."""
    if unknown := set(arguments.sets) - set(SETS):
        msg = f'no set is named {min(unknown)!r}; the sets are {", ".join(SETS)}'
        raise UsageError(msg)
    if arguments.offset < 0 or (arguments.limit is not None and arguments.limit < 1):
        msg = '--limit must be 1 or more, and --offset 0 or more'
        raise UsageError(msg)
    chosen: list[Task] = []
    for name in arguments.sets or SETS:
        if name in PUBLIC and arguments.data is None:
            say(f'{name}: skipped; give the folder with its data: --data FOLDER')
            continue
        last = None if arguments.limit is None else arguments.offset + arguments.limit
        chosen += load_set(name, arguments.data)[arguments.offset : last]
    return chosen if arguments.only is None else _named(chosen, arguments.only)


def _named(tasks: Sequence[Task], only: str) -> list[Task]:
    names = {name.strip() for name in only.split(',')} - {''}
    known = {name for task in tasks for name in (task.id, task.category)}
    if not names or names - known:
        msg = f'no task or category is named {min(names - known, default="")!r}'
        raise UsageError(msg)
    return [task for task in tasks if {task.id, task.category} & names]


# Sides ----------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def open_side(arguments: Arguments, say: Say) -> AsyncGenerator[tuple[str, Solve]]:
    """The name of the model, and what solves a task with it."""
    if arguments.side == 'smolagents':
        with _server(arguments, say) as url:
            name = served_model(url)
            yield name, lambda task: asyncio.to_thread(_solve_elsewhere, task, arguments, url, name)
        return
    solve = {'habilis': habilis_side.solve, 'bare': bare_side.solve}[arguments.side]
    model = load_model(_served(arguments) if arguments.url else arguments.model)
    try:
        await _warm_up(model)
        yield model.name, lambda task: solve(model, task, arguments.seconds)
    finally:
        await model.close()


def _server(arguments: Arguments, say: Say) -> contextlib.AbstractContextManager[str]:
    """The server that was given, or one for the weights of the embedded model."""
    if arguments.url:
        return contextlib.nullcontext(arguments.url)
    from habilis.models.local import store

    provider, _, name = arguments.model.partition(':')
    if provider != 'local':
        msg = f'{arguments.model} has no weights to start a server with; give the server of a model with --url'
        raise UsageError(msg)
    weights = store.find(name)
    say(f'starting a server for {weights.name} …')
    return model_server(weights)


def _served(arguments: Arguments) -> ModelConfig:
    """The model of a server, with the same settings as the embedded one."""
    assert arguments.url
    return ModelConfig(
        model=f'llamacpp:{served_model(arguments.url)}',
        base_url=arguments.url,
        temperature=0.0,
        max_tokens=bare_side.MAX_TOKENS,
        timeout=arguments.seconds,
        functions=False,
        small=True,
    )


async def _warm_up(model: Model) -> None:
    """Load the weights before the clock of the first task starts."""
    if not model.traits.scripted:
        await model.request([Message(role='user', text='Hello')], Options(max_tokens=1))


def _solve_elsewhere(task: Task, arguments: Arguments, url: str, model: str) -> Outcome:
    """Solve a task with smolagents, in a process of the Python that has it."""
    order = Order(
        set=task.set,
        task=task.id,
        data=str(arguments.data.absolute()) if arguments.data else None,
        url=url,
        model=model,
        steps=habilis_side.STEPS,
        seconds=arguments.seconds,
        max_tokens=bare_side.MAX_TOKENS,
    )
    try:
        done = subprocess.run(
            [arguments.python, '-m', 'evals.smolagents_side'],
            input=json.dumps(dataclasses.asdict(order)),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=arguments.seconds + START_SECONDS,
            check=False,
        )
    except OSError as error:
        msg = f'{arguments.python} cannot be started: {error.strerror}'
        raise UsageError(msg) from None
    except subprocess.TimeoutExpired as error:
        return unsolved(task, 'max_seconds', error.timeout)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ['no reason given'])[-1]
        msg = f'smolagents does not run in {arguments.python}: {reason}. Name a Python that has it: --python PATH'
        raise UsageError(msg)
    return outcomes.from_json(done.stdout)


# The command ----------------------------------------------------------------------------------------------------------


async def evaluate(arguments: Arguments, say: Say) -> None:
    """Solve the tasks one after the other, then print a table of the sets."""
    tasks = select_tasks(arguments, say)
    if not tasks:
        return
    earlier = {(one.set, one.task): one for one in outcomes.read(arguments.results)} if arguments.results else {}
    done: list[Outcome] = []
    async with open_side(arguments, say) as (name, solve):
        say(f'{arguments.side} with {name}')
        for task in tasks:
            outcome = earlier.get((task.set, task.id))
            if outcome is None:
                outcome = dataclasses.replace(await solve(task), model=name)
                say(scores.line(outcome))
                if arguments.results:
                    outcomes.append(arguments.results, outcome)
            done.append(outcome)
    say('')
    say(scores.table({arguments.side: done}))


def main() -> None:
    """For `python -m evals.run`."""
    try:
        asyncio.run(evaluate(parse_arguments(), lambda text: print(text, flush=True)))
    except (HabilisError, ImportError, MissingData, NoServer, UsageError) as error:
        print(f'evals: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
