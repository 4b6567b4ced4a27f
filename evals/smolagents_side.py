"""smolagents, as the evaluation runs it: one task per process, so that it may be installed in another Python.

Reads the fields of `Order` as a JSON object on stdin, and prints the outcome as one line of JSON. Imports only
smolagents, the standard library and the tasks.
"""

import contextlib
import importlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, TextIO, cast

from evals import outcomes
from evals.outcomes import Outcome
from evals.sets import load_set
from evals.tasks import Task

IMPORTS = (
    'bisect',
    'calendar',
    'csv',
    'decimal',
    'fractions',
    'functools',
    'heapq',
    'io',
    'json',
    'operator',
    're',
    'string',
)
"""Modules its code may import beside its default ones: those that tasks are about."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One task to solve, and with what."""

    set: str
    task: str
    data: str | None
    """Folder of the public data."""

    url: str
    model: str
    steps: int
    seconds: float
    max_tokens: int


def main() -> None:
    """Solve one task."""
    order = Order(**json.load(sys.stdin))
    tasks = load_set(order.set, Path(order.data) if order.data else None)
    [task] = [task for task in tasks if task.id == order.task]
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the outcome alone
        agent = make_agent(task, order)
        watch = threading.Timer(order.seconds, _time_out, (task, order.seconds, out))
        watch.daemon = True
        watch.start()
        outcome = solve(agent, task)
        watch.cancel()
    _write(outcome, out)


def make_agent(task: Task, order: Order) -> Any:
    """A `CodeAgent` as its documentation makes one, with the task's tools."""
    vendor: Any = importlib.import_module('smolagents')
    model = vendor.OpenAIServerModel(
        model_id=order.model,
        api_base=order.url,
        api_key='none',
        temperature=0.0,
        max_tokens=order.max_tokens,
        flatten_messages_as_text=True,  # which every server takes
    )
    return vendor.CodeAgent(
        tools=[vendor.tool(documented(tool)) for tool in task.tools],
        model=model,
        max_steps=order.steps,
        additional_authorized_imports=list(IMPORTS),
        verbosity_level=vendor.LogLevel.OFF,
    )


def solve(agent: Any, task: Task) -> Outcome:
    """Run the agent; tests run in its own interpreter afterwards."""
    started = time.perf_counter()
    try:
        answer = agent.run(task.text, additional_args=dict(task.variables) or None)
    except Exception as error:  # whatever another framework raises, the task is not solved
        return unsolved(task, f'{type(error).__name__}: {error}', time.perf_counter() - started)
    seconds = time.perf_counter() - started
    failure = run_tests(agent, task) if task.tests else ''
    return Outcome(
        set=task.set,
        task=task.id,
        side='smolagents',
        solved=not failure if task.tests else task.accepts(answer),
        answer=failure or repr(answer),
        seconds=seconds,
        steps=sum(type(step).__name__ == 'ActionStep' for step in agent.memory.steps),
        tokens=agent.monitor.total_output_token_count,
    )


def run_tests(agent: Any, task: Task) -> str:
    """Run the tests of a task on what is defined in the agent's interpreter. Returns the error; empty if all pass."""
    try:
        agent.python_executor('\n'.join(task.tests))
    except Exception as error:  # of the tests, wrapped by its interpreter
        return f'tests: {error}'
    return ''


def unsolved(task: Task, answer: str, seconds: float) -> Outcome:
    """The outcome of a run that ended without an answer."""
    return Outcome(set=task.set, task=task.id, side='smolagents', solved=False, answer=answer, seconds=seconds)


def documented(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with a docstring that names its arguments, which smolagents demands."""
    tool = cast('FunctionType', tool)
    copy = FunctionType(tool.__code__, tool.__globals__, tool.__name__, tool.__defaults__, tool.__closure__)
    copy.__annotations__ = tool.__annotations__
    arguments = [f'    {name}: The {name}.' for name in inspect.signature(tool).parameters]
    copy.__doc__ = '\n'.join([inspect.getdoc(tool) or '', '', 'Args:', *arguments])
    return copy


def _time_out(task: Task, seconds: float, out: TextIO) -> None:
    _write(unsolved(task, 'max_seconds', seconds), out)
    os._exit(0)


def _write(outcome: Outcome, out: TextIO) -> None:
    print(outcomes.to_json(outcome), file=out, flush=True)


if __name__ == '__main__':
    main()
