"""A process with a session that never finishes its second turn: it waits in the middle of a cell, to be killed."""

import asyncio
import sys
from pathlib import Path

from habilis.assistant import Session
from habilis.memory import Memory
from habilis.models.scripted import ScriptedModel
from habilis.tools import tool
from tests.agent.scripts import block

FIRST = block("x = 41\nremember('The boat is called Nordlicht')\ncreate_task('Paint the boat')\nfinal_answer(x)")
SECOND = [block("print('once')\ncount()"), block('await pause()\nfinal_answer(x + 1)')]


@tool
def count() -> None:
    """Count how often this was called."""
    with Path('calls').open('a') as file:
        file.write('called\n')


@tool
async def pause() -> None:
    """Wait, in the first process for ever."""
    if '--wait' in sys.argv:
        print('waiting', flush=True)
        await asyncio.sleep(600)


async def main(id: str) -> None:
    """Take two turns."""
    async with Memory('memory.db') as memory:
        model = ScriptedModel([FIRST, *SECOND])
        async with Session(model, memory=memory, journal='runs.db', id=id, tools=[count, pause]) as session:
            await session.send('My boat is called Nordlicht.')
            await session.send('One more?')


if __name__ == '__main__':
    asyncio.run(main(sys.argv[1]))
