"""A run of an agent that each version has written once: `python -m tests.journal.versions.agent_story FOLDER`.

As with `story.py`: what a released version has written is never written again.
"""

import asyncio
import json
import sys
from pathlib import Path

from habilis.agent import Agent
from habilis.journal import MemoryStore
from habilis.journal.copies import export_run
from habilis.models import ScriptedModel
from habilis.models.contract import FunctionCall, Reply
from habilis.tools import ApprovalRequest, log, tool

NAME = 'agent-run.txt'
CODE = "print(look_up('lamps'))\ntry:\n    order('lamps', 13)\nexcept Exception as error:\n    print(error)"
REPLIES = (
    Reply(text='I look.', calls=(FunctionCall(id='c1', name='python', arguments=json.dumps({'code': CODE})),)),
    Reply(calls=(FunctionCall(id='c2', name='order', arguments='{"what": "lamps", "number": 2}'),)),
    Reply(calls=(FunctionCall(id='c3', name='python', arguments='{"code": "final_answer(2)"}'),)),
)
MADE: list[str] = []
"""The tool calls that this process has made."""


@tool
def look_up(what: str) -> dict[str, int]:
    """How many there are."""
    MADE.append(f'look_up {what}')
    log('in the cellar')
    return {what: 7}


@tool(side='both', idempotent=False, needs_approval=True)
def order(what: str, number: int) -> str:
    """Order some."""
    MADE.append(f'order {number} {what}')
    return f'{number} {what}'


def decide(request: ApprovalRequest) -> bool:
    """A person, who is superstitious."""
    return request.arguments['number'] != 13


def shop(store: MemoryStore, replies: tuple[Reply, ...] = REPLIES) -> Agent:
    """The agent of the story, with these replies left."""
    model = ScriptedModel(list(replies), functions=True)
    return Agent(model, name='shop', tools=[look_up, order], approve=decide, journal=store)


async def main(folder: Path) -> None:
    """As an exported run."""
    store = MemoryStore()
    async with shop(store) as agent:
        await agent.run('Order two lamps', run_id='run-1')
    (folder / NAME).write_text(await export_run(store, 'run-1'), encoding='ascii')


if __name__ == '__main__':
    asyncio.run(main(Path(sys.argv[1])))
