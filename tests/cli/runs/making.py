"""Runs for the commands that look at runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.chat import code, script
from tests.cli.process import habilis
from tests.place import Place

SUM = ('I compute.\n' + code('x = 6 * 7\nprint(x + 1)'), code('y = x * 2\nprint(y)'), code('final_answer(x + y)'))
"""Replies of a run of three steps, whose answer is 126."""

PROGRAM = """
import asyncio
from habilis import Agent, ScriptedModel, tool

@tool(needs_approval=True)
def send(text: str) -> str:
    with open('sent.txt', 'a') as file:
        file.write(text + '\\n')
    return 'sent ' + text

REPLIES = [
    "```python\\nname = 'Ada'\\nprint(name)\\n```",
    "```python\\nprint(send('to ' + name))\\n```",
    "```python\\nfinal_answer(name)\\n```",
]
agent = Agent(ScriptedModel(REPLIES), tools=[send])
if __name__ == '__main__':
    print(asyncio.run(agent.run('Send it', run_id='run-send')).ended)
"""
"""An agent whose second step needs an approval."""

FLOW = """
import asyncio
from habilis import FlowPaused, approval, flow, step

@step
async def fetch(name: str) -> str:
    with open('fetched.txt', 'a') as file:
        file.write(name + '\\n')
    return name.upper()

@flow
async def publish(name: str) -> str:
    text = await fetch(name)
    if not await approval('Publish ' + text + '?'):
        raise ValueError('not published')
    return await fetch(text + '!')

async def main():
    run = await publish.start('news', run_id='run-flow')
    try:
        await run.result()
    except FlowPaused as paused:
        print('waits')

if __name__ == '__main__':
    asyncio.run(main())
"""
"""A flow that waits for a person in the middle."""


def runs(*arguments: str, stdin: str | bytes = '') -> subprocess.CompletedProcess[str]:
    """Run `habilis runs`."""
    return habilis('runs', *arguments, stdin=stdin)


def make(place: Place, *replies: str, options: tuple[str, ...] = (), task: str = 'What is it?') -> str:
    """A run of `habilis run` with these replies; its name."""
    model = script(place.folder, *(replies or SUM))
    done = habilis('run', task, '--json', '--quiet', '--model', model, *options)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)['run_id']


def listed(*arguments: str) -> list[dict[str, Any]]:
    """What `habilis runs list` has."""
    return json.loads(runs('list', '--json', *arguments).stdout)


def journal(place: Place) -> Path:
    """The file of the journal."""
    return place.folder.parent / 'data' / 'runs.db'
