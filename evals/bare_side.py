"""The model without an agent: one plain prompt, and the code block of the reply run once."""

import asyncio
import inspect
import re
import time

from evals.habilis_side import run_tests
from evals.outcomes import Outcome
from evals.tasks import Task
from habilis import HabilisError, Sandbox
from habilis.models import Message, Model, Options, Reply

MAX_TOKENS = 2048


async def solve(model: Model, task: Task, seconds: float) -> Outcome:
    """Ask once, run the block, and judge what it printed or defined."""
    started = time.perf_counter()
    question = prompt(task)
    reply = Reply()
    solved = False
    try:
        async with asyncio.timeout(seconds):
            reply = await model.request(
                [Message(role='user', text=question)], Options(temperature=0.0, max_tokens=MAX_TOKENS)
            )
            solved, answer = await _judge(task, reply.text)
    except TimeoutError:
        answer = 'max_seconds'
    except HabilisError as error:
        answer = f'{type(error).__name__}: {error}'
    return Outcome(
        set=task.set,
        task=task.id,
        side='bare',
        solved=solved,
        answer=answer,
        seconds=time.perf_counter() - started,
        steps=1,
        tokens=reply.usage.output_tokens,
        transcript=() if solved else [('user', question), ('assistant', reply.text)],
    )


def prompt(task: Task) -> str:
    """The task, the functions it may call, and one sentence that asks for a block."""
    goal = 'defines the function' if task.tests else 'prints the answer'
    stubs = [f'def {tool.__name__}{inspect.signature(tool)}:\n    """{inspect.getdoc(tool)}"""' for tool in task.tools]
    given = [f'Already defined: {name}' for name in (*task.variables, *stubs)]
    return '\n\n'.join([task.text, *given, f'Write one Python block that {goal}.'])


def first_block(text: str) -> str | None:
    """The first fenced block of a reply, also one that was cut off; None if there is none."""
    found = re.search(r'```[^\n]*\n(.*?)(?:```|\Z)', text, re.DOTALL)
    return found[1] if found else None


async def _judge(task: Task, text: str) -> tuple[bool, str]:
    code = first_block(text)
    if code is None:
        return False, 'no code block'
    async with await Sandbox.create(tools=task.tools, variables=task.variables) as sandbox:
        cell = await sandbox.run(code)
        if task.tests:
            failure = await run_tests(sandbox, task)
            return not failure, failure or 'tests passed'
    if cell.error is not None:
        return False, str(cell.error)
    lines = cell.stdout.strip().splitlines() or ['']
    return task.accepts(lines[-1]), lines[-1] or 'nothing printed'
