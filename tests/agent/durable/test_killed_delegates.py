"""A process is killed while two subagents work: the run is resumed, and nothing that was done is repeated."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, json, os, signal, sys
from pathlib import Path
from habilis import Agent, ScriptedModel, tool
from habilis.agent.events import ToolReturned

folder = Path(sys.argv[1])
one_is_done = asyncio.Event()
CODE = {
    'go': ['''
import asyncio
found = await asyncio.gather(delegate('FIRST'), delegate('SECOND'))
final_answer(found)
'''],
    'FIRST': ['sent = send("first")', 'final_answer(sent)'],
    'SECOND': ['x = send("second")', 'await die_once()', 'final_answer([x, "after"])'],
}

def note(line):
    with open(folder / 'log.txt', 'a') as file:
        file.write(line + '\\n')

def reply(messages):
    task = next(name for name in CODE if any(name in message.text for message in messages if message.role == 'user'))
    step = sum(message.role == 'assistant' for message in messages)
    note(f'asked {task} {step}')
    return '```python\\n' + CODE[task][step] + '\\n```'

@tool(idempotent=False)
def send(text: str) -> str:
    '''Send.'''
    note(f'sent {text}')
    return f'sent {text}'

@tool
async def die_once() -> None:
    '''Die, but not twice.'''
    if not (folder / 'died').exists():
        await one_is_done.wait()
        (folder / 'died').touch()
        os.kill(os.getpid(), signal.SIGKILL)

def watch(event):
    if isinstance(event, ToolReturned) and event.call.tool == 'delegate':
        one_is_done.set()

async def main():
    options = {'tools': [send, die_once], 'hooks': [watch], 'journal': folder / 'runs.db'}
    async with Agent(ScriptedModel(reply), helpers=True, **options) as agent:
        result = await agent.run('go', run_id='r', resume=True)
        print(json.dumps([result.output, result.usage.requests]))

asyncio.run(main())
"""


@pytest.mark.one_protocol
def test_finished_subagents_and_effects_are_not_repeated_after_a_kill(tmp_path: Path) -> None:
    ended = [
        subprocess.run([sys.executable, '-c', PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [process.returncode for process in ended] == [-9, 0], ended[1].stderr
    assert json.loads(ended[1].stdout) == [['sent first', ['sent second', 'after']], 6]
    done = Counter((tmp_path / 'log.txt').read_text().splitlines())
    assert done == {
        'asked go 0': 1,
        'asked FIRST 0': 1,
        'asked FIRST 1': 1,
        'asked SECOND 0': 1,
        'asked SECOND 1': 1,
        'asked SECOND 2': 1,
        'sent first': 1,
        'sent second': 1,
    }
