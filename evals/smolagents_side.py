"""smolagents, as the evaluation runs it: one task in a process of its own, perhaps of another Python.

Reads a JSON object on stdin (`task`, `url`, `model`, `steps`, `seconds`, `max_tokens`), prints the outcome as one JSON
object. Imports only smolagents, the standard library and the tasks, so that no dependencies have to fit together.
"""

import contextlib
import dataclasses
import importlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, TextIO, cast

from evals.outcome import Outcome
from evals.tasks import HELD_OUT, TASKS, Task

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
    'string',
)
"""What its code may import beside what it may anyway: the tasks are about CSV and JSON."""


def main() -> None:
    """Solve one task."""
    order = json.load(sys.stdin)
    [task] = [task for task in (*TASKS, *HELD_OUT) if task.id == order['task']]
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # whatever it prints, the outcome stays readable
        agent = make_agent(task, order)
        watch = threading.Timer(order['seconds'], _time_is_up, (task, order['seconds'], out))
        watch.daemon = True
        watch.start()
        outcome = solve(agent, task)
        watch.cancel()
    _write(outcome, out)


def make_agent(task: Task, order: dict[str, Any]) -> Any:
    """A `CodeAgent` as its documentation makes one, with the task's tools."""
    vendor: Any = importlib.import_module('smolagents')
    model = vendor.OpenAIServerModel(
        model_id=order['model'],
        api_base=order['url'],
        api_key='none',
        temperature=0.0,
        max_tokens=order['max_tokens'],
        flatten_messages_as_text=True,  # which every server takes
    )
    return vendor.CodeAgent(
        tools=[vendor.tool(documented(tool)) for tool in task.tools],
        model=model,
        max_steps=order['steps'],
        additional_authorized_imports=list(IMPORTS),
        verbosity_level=vendor.LogLevel.OFF,
    )


def solve(agent: Any, task: Task) -> Outcome:
    """The task, timed and checked."""
    started = time.perf_counter()
    try:
        answer = agent.run(task.text, additional_args=dict(task.variables) or None)
    except Exception as error:  # whatever another framework raises, the task is not solved
        return Outcome(
            task=task.id, solved=False, answer=f'{type(error).__name__}: {error}', seconds=time.perf_counter() - started
        )
    return Outcome(
        task=task.id,
        solved=task.solved_by(answer),
        answer=repr(answer),
        seconds=time.perf_counter() - started,
        steps=sum(type(step).__name__ == 'ActionStep' for step in agent.memory.steps),
        tokens=agent.monitor.total_output_token_count,
    )


def documented(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with a docstring that names its arguments, without which smolagents takes none."""
    tool = cast('FunctionType', tool)
    copy = FunctionType(tool.__code__, tool.__globals__, tool.__name__, tool.__defaults__, tool.__closure__)
    copy.__annotations__ = tool.__annotations__
    arguments = [f'    {name}: The {name}.' for name in inspect.signature(tool).parameters]
    copy.__doc__ = '\n'.join([inspect.getdoc(tool) or '', '', 'Args:', *arguments])
    return copy


def _time_is_up(task: Task, seconds: float, out: TextIO) -> None:
    _write(Outcome(task=task.id, solved=False, answer='max_seconds', seconds=seconds), out)
    os._exit(0)


def _write(outcome: Outcome, out: TextIO) -> None:
    print(json.dumps(dataclasses.asdict(outcome)), file=out, flush=True)


if __name__ == '__main__':
    main()
