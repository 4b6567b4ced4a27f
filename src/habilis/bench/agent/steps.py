"""What a step costs when the model takes no time. A run here prints the numbers from 0 on, one in each step."""

import time

from habilis.agent import Agent, RunLimits
from habilis.core.errors import AgentError
from habilis.core.settings import Settings
from habilis.models import ScriptedModel
from habilis.sandbox import Sandbox

STEPS = 20
TASK = 'Print the numbers from 0 on.'
DONE = 'done'


def code(number: int) -> str:
    """What the model writes in a step; the last one ends the run."""
    return f'print({number})' if number < STEPS else f'final_answer({DONE!r})'


def fenced(number: int) -> str:
    """The same as a reply."""
    return f'```python\n{code(number)}\n```'


async def ours() -> float:
    """Seconds per step of a whole run: its sandbox, its prompt and its end are in it too."""
    model = ScriptedModel([fenced(number) for number in range(STEPS + 1)])
    async with Agent(model, limits=RunLimits(steps=STEPS + 1), settings=Settings()) as agent:
        started = time.perf_counter()
        result = await agent.run(TASK)
        taken = time.perf_counter() - started
    if (result.output, len(result.steps)) != (DONE, STEPS + 1):
        msg = f'the agent gave {result.output!r} after {len(result.steps)} steps ({result.ended})'
        raise AgentError(msg)
    return taken / STEPS


async def cell() -> float:
    """Seconds per step if there is only the sandbox: a new one, and the same code in it."""
    started = time.perf_counter()
    async with await Sandbox.create() as sandbox:
        cells = [await sandbox.run(code(number)) for number in range(STEPS)]
    taken = time.perf_counter() - started
    if [one.stdout for one in cells] != [f'{number}\n' for number in range(STEPS)]:
        msg = f'the sandbox printed {[one.stdout for one in cells]}'
        raise AgentError(msg)
    return taken / STEPS
