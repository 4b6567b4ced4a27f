"""Run the tasks: `python -m evals.run --help`. Exit code 1 if too few are solved, 2 if it could not be tried."""

import argparse
import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals import habilis_side, scores
from evals.outcome import Outcome
from evals.server import NoServer, model_server, served_model
from evals.tasks import HELD_OUT, TASKS, Task
from habilis.cli.task.choosing import Wish, choose_model, find_choice, get_ready, is_embedded
from habilis.cli.task.person import Person
from habilis.core.errors import HabilisError
from habilis.core.settings import Settings, load_settings
from habilis.models import Message, Model, ModelConfig, Options, load_model
from habilis.models.local import store
from habilis.models.registry import resolve_name

STEPS = 8
MAX_TOKENS = 2048
"""Of one reply, for every framework."""

GRACE = 60.0
"""Seconds for another Python to start and to import its framework."""

ROOT = Path(__file__).parents[1]
Solve = Callable[[Task], Awaitable[Outcome]]


class WrongRequest(Exception):
    """The arguments make no sense."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What was asked for."""

    model: str
    url: str | None
    peer: str | None
    peer_python: str
    only: str | None
    held_out: bool
    repeat: int
    json: Path | None
    markdown: Path | None
    yes: bool


def parse_arguments(arguments: Sequence[str] | None = None) -> Arguments:
    """Those of the command line."""
    parser = argparse.ArgumentParser(prog='python -m evals.run', description='Forty small tasks with exact answers.')
    parser.add_argument('--model', default='local:', help='what solves them (default: the embedded model)')
    parser.add_argument('--url', help='a server that speaks the chat protocol, instead of --model')
    parser.add_argument('--peer', choices=['smolagents'], help='another framework, in turns with ours on one server')
    parser.add_argument('--peer-python', default=sys.executable, metavar='PATH', help='the Python that has it')
    parser.add_argument('--only', metavar='NAMES', help='some tasks or categories, with commas between')
    parser.add_argument('--held-out', action='store_true', help='the twenty that the agent was not improved with')
    parser.add_argument('--repeat', type=int, default=1, metavar='N', help='each task so many times')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write all outcomes there')
    parser.add_argument('--markdown', type=Path, metavar='FILE', help='write the table there')
    parser.add_argument('--yes', action='store_true', help='download the embedded model without asking')
    return Arguments(**vars(parser.parse_args(arguments)))


def selected(only: str | None, repeat: int = 1, *, tasks: Sequence[Task] = TASKS) -> tuple[Task, ...]:
    """Those of these ids and categories; all of them without names. Raises `WrongRequest`."""
    if repeat < 1:
        msg = f'--repeat must be 1 or more, not {repeat}'
        raise WrongRequest(msg)
    names = {name.strip() for name in only.split(',')} - {''} if only is not None else set[str]()
    known = {task.id for task in tasks} | {task.category for task in tasks}
    if unknown := names - known:
        categories = ', '.join(dict.fromkeys(task.category for task in tasks))
        msg = f'no task or category is named {min(unknown)!r}; the categories are {categories}'
        raise WrongRequest(msg)
    if only is not None and not names:
        msg = '--only needs the name of a task or of a category'
        raise WrongRequest(msg)
    return tuple(task for task in tasks for _ in range(repeat) if not names or {task.id, task.category} & names)


async def solve_all(
    tasks: Sequence[Task], frameworks: Mapping[str, Solve], say: Callable[[str], None]
) -> dict[str, list[Outcome]]:
    """Each category by each framework, one after the other: what disturbs the machine disturbs all.

    Not task by task: a server keeps the last prompt evaluated, and each would have to begin anew every time.
    """
    outcomes: dict[str, list[Outcome]] = {who: [] for who in frameworks}
    for _, group in itertools.groupby(tasks, key=lambda task: task.category):
        alike = list(group)
        for who, solve in frameworks.items():
            for task in alike:
                outcome = await solve(task)
                outcomes[who].append(outcome)
                say(scores.line(who, task, outcome))
    return outcomes


# Frameworks -----------------------------------------------------------------------------------------------------------


def ours(model: Model) -> Solve:
    """Habilis with this model."""
    return lambda task: habilis_side.solve(model, task)


def smolagents(python: str, url: str, name: str) -> Solve:
    """smolagents in a process of that Python."""

    async def solve(task: Task) -> Outcome:
        seconds = habilis_side.SECONDS
        order = {
            'task': task.id,
            'url': url,
            'model': name,
            'steps': STEPS,
            'seconds': seconds,
            'max_tokens': MAX_TOKENS,
        }
        return await asyncio.to_thread(_in_another_python, python, order, seconds + GRACE)

    return solve


def _in_another_python(python: str, order: Mapping[str, object], seconds: float) -> Outcome:
    command = [python, '-m', 'evals.smolagents_side']
    try:
        done = subprocess.run(
            command,
            input=json.dumps(dict(order)),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except OSError as error:
        msg = f'{python} cannot be started: {error.strerror}'
        raise WrongRequest(msg) from None
    except subprocess.TimeoutExpired:
        return Outcome(task=str(order['task']), solved=False, answer='max_seconds', seconds=seconds)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ['no reason given']
        msg = f'smolagents does not run in {python}: {said[-1]}. Name a Python that has it: --peer-python PATH'
        raise WrongRequest(msg)
    return Outcome(**json.loads(done.stdout))


# Models ---------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def prepared(arguments: Arguments, say: Callable[[str], None]) -> AsyncGenerator[tuple[str, dict[str, Solve]]]:
    """The name of the model, and the frameworks that use it; its server, if there is one, runs meanwhile."""
    settings = load_settings()
    with contextlib.ExitStack() as stack:
        url = arguments.url
        if url is None and arguments.peer:
            weights = await _weights(arguments, settings, say)
            say(f'starting a server for {weights.name} …')
            url = stack.enter_context(model_server(weights))
        if url is None:
            wish = Wish(name=arguments.model, download=arguments.yes)
            model = await choose_model(wish, settings, Person(), say)
            name = model.name
        else:
            name = served_model(url)
            model = load_model(_served(url, name), settings=settings)
        frameworks = {'habilis': ours(model)}
        if arguments.peer and url is not None:
            frameworks[arguments.peer] = smolagents(arguments.peer_python, url, name)
        try:
            await _warm(model)
            yield name, frameworks
        finally:
            await model.close()


def _served(url: str, name: str) -> ModelConfig:
    """Asked as the embedded model is asked."""
    return ModelConfig(
        model=f'llamacpp:{name}',
        base_url=url,
        temperature=0.0,
        max_tokens=MAX_TOKENS,
        timeout=float(habilis_side.SECONDS),
    )


async def _weights(arguments: Arguments, settings: Settings, say: Callable[[str], None]) -> Path:
    wish = Wish(name=arguments.model, download=arguments.yes)
    choice = await find_choice(wish, settings)
    if not is_embedded(choice.config):
        msg = f'{arguments.model} has no weights to start a server with; give the server of a model with --url'
        raise WrongRequest(msg)
    await get_ready(choice, wish, Person(), say)
    return store.find(resolve_name(choice.config).model)


async def _warm(model: Model) -> None:
    """Weights are read before the clock of the first task starts."""
    if not model.traits.scripted:
        await model.request([Message(role='user', text='Hello')], Options(max_tokens=1))


# The command ----------------------------------------------------------------------------------------------------------


async def evaluate(arguments: Arguments, say: Callable[[str], None]) -> int:
    """Run, show and write what was asked for; the exit code."""
    tasks = selected(arguments.only, arguments.repeat, tasks=HELD_OUT if arguments.held_out else TASKS)
    async with prepared(arguments, say) as (name, frameworks):
        outcomes = await solve_all(tasks, frameworks, say)
    say('')
    say(scores.plain(scores.table(tasks, outcomes)))
    say('')
    for sentence in scores.summary(outcomes):
        say(sentence)
    if arguments.json:
        text = json.dumps(scores.to_json(name, outcomes), indent=2, ensure_ascii=False)
        arguments.json.write_text(f'{text}\n', encoding='utf-8')
    if arguments.markdown:
        arguments.markdown.write_text(scores.markdown(f'Small tasks with {name}', tasks, outcomes), encoding='utf-8')
    return 0 if scores.score(outcomes['habilis']).rate >= scores.GOAL else 1


def main() -> None:
    """For `python -m evals.run`."""
    try:
        code = asyncio.run(evaluate(parse_arguments(), lambda text: print(text, flush=True)))
    except (HabilisError, ImportError, NoServer, WrongRequest) as error:
        print(f'evals: {error}', file=sys.stderr)
        code = 2
    sys.exit(code)


if __name__ == '__main__':
    main()
