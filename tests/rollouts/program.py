"""Samples a set of rollouts in a process of its own, which a test kills: `python -m tests.rollouts.program FOLDER`."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from habilis import Agent, ScriptedModel
from habilis.agent.durable.training_rows import to_json_lines
from habilis.models.contract import Message, Reply
from habilis.rollouts import Rollouts, RolloutTask, group_rows

TASKS = [RolloutTask(task='Double it.', expected=2 * n, prepare=f'number = {n}', id=f'n{n}') for n in (3, 4)]


async def main(folder: Path) -> None:
    """Sample the set, leave a trace of each request, and write the rows."""

    async def reply(messages: Sequence[Message]) -> Reply:
        seed = model.requests[-1].options.extra['seed']
        assert isinstance(seed, int)
        turn = sum(message.role == 'assistant' for message in messages)
        with (folder / 'requests').open('ab', buffering=0) as file:
            file.write(json.dumps([seed, turn]).encode() + b'\n')
        while (folder / 'hold').exists() and len((folder / 'requests').read_text('utf-8').splitlines()) > 6:  # noqa: ASYNC110 - a test removes the file
            await asyncio.sleep(0.01)
        code = f'x = number * {2 + seed % 2}' if turn == 0 else 'final_answer(x)'
        return Reply(text=f'```python\n{code}\n```')

    model = ScriptedModel(reply)
    async with (
        Agent(model, journal=folder / 'runs.db') as agent,
        Rollouts(agent, TASKS, samples=4, name='set', concurrency=1) as rollouts,
    ):
        groups = [group async for group in rollouts]
    (folder / 'rows.jsonl').write_text(to_json_lines(group_rows(groups)), 'utf-8')


if __name__ == '__main__':
    asyncio.run(main(Path(sys.argv[1])))
