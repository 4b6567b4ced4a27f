"""Time per agent step with a scripted model. The run prints the numbers from 0 on, one per step."""

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
    """Code of a step; the last one ends the run."""
    return f'print({number})' if number < STEPS else f'final_answer({DONE!r})'


def reply(number: int) -> str:
    """Model reply with the code of a step."""
    return f'```python\n{code(number)}\n```'


async def agent_step() -> float:
    """Seconds per step of a whole agent run, including its sandbox and prompt."""
    model = ScriptedModel([reply(number) for number in range(STEPS + 1)])
    async with Agent(model, limits=RunLimits(steps=STEPS + 1), settings=Settings()) as agent:
        started = time.perf_counter()
        result = await agent.run(TASK)
        taken = time.perf_counter() - started
    if (result.output, len(result.steps)) != (DONE, STEPS + 1):
        msg = f'the agent returned {result.output!r} after {len(result.steps)} steps ({result.ended})'
        raise AgentError(msg)
    return taken / STEPS


async def sandbox_step() -> float:
    """Seconds per step of the same code in a new sandbox, without an agent."""
    started = time.perf_counter()
    async with await Sandbox.create() as sandbox:
        cells = [await sandbox.run(code(number)) for number in range(STEPS)]
    taken = time.perf_counter() - started
    if [cell.stdout for cell in cells] != [f'{number}\n' for number in range(STEPS)]:
        msg = f'the sandbox printed {[cell.stdout for cell in cells]}'
        raise AgentError(msg)
    return taken / STEPS
