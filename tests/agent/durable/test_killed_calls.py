"""What is known about the tool calls of a process that was killed: which, with which arguments, and in which code."""

import subprocess
import sys
from pathlib import Path

import pytest

from habilis import Agent, ScriptedModel, tool
from habilis.agent.durable.trajectory import RecordedStep, read_trajectories
from habilis.journal.runs import read_run
from habilis.journal.stores.urls import open_store

CODE = """
try:
    half(amount='much')
except Exception as error:
    print(error)
print(half(amount=8))
try:
    remove('b')
except Exception as error:
    print(error)
{last}
"""

PROGRAM = """
import os, signal, sys
from habilis import Agent, ScriptedModel, tool

def die():
    os.kill(os.getpid(), signal.SIGKILL)

@tool
def half(amount: int, die_now: bool = False) -> int:
    '''Halve.'''
    if die_now:
        die()
    return amount // 2

@tool(idempotent=False)
def pay(to: str, amount: int) -> None:
    '''Pay.'''
    die()

@tool(needs_approval=True)
def remove(what: str) -> None:
    '''Remove.'''

def approve(request):
    if request.arguments['what'] == 'c':
        die()
    return False

reply = '```python' + sys.stdin.read() + '```'
agent = Agent(ScriptedModel([reply]), tools=[half, pay, remove], approve=approve, journal=sys.argv[1])
agent.run_sync('go', run_id='run-1')
"""

BEFORE: list[tuple[str, dict[str, object], str, str]] = [
    ('half', {'amount': 'much'}, 'invalid', ''),
    ('half', {'amount': 8, 'die_now': False}, 'allowed', '4'),
    ('remove', {'what': 'b'}, 'refused', ''),
]


async def _killed(path: Path, last: str) -> RecordedStep:
    code = CODE.format(last=last)
    done = subprocess.run([sys.executable, '-c', PROGRAM, str(path)], input=code, text=True, check=False)
    assert done.returncode == -9
    store = open_store(path)
    [trajectory] = await read_trajectories(await read_run(store, 'run-1'))
    await store.close()
    [turn] = trajectory.turns
    assert turn.code == code.strip()
    return turn


@pytest.mark.one_protocol
@pytest.mark.parametrize(
    ('last', 'name', 'arguments', 'decision'),
    [
        ("pay('bob', 100)", 'pay', {'to': 'bob', 'amount': 100}, 'unfinished'),
        ('half(6, die_now=True)', 'half', {'amount': 6, 'die_now': True}, 'unfinished'),
        ("remove('c')", 'remove', {'what': 'c'}, 'waiting'),
    ],
)
async def test_every_call_has_its_row_when_the_process_dies(
    tmp_path: Path, last: str, name: str, arguments: dict[str, object], decision: str
) -> None:
    turn = await _killed(tmp_path / 'runs.db', last)
    rows = [(call.tool, call.arguments, call.decision, call.result) for call in turn.calls]
    assert sorted(rows, key=str) == sorted([*BEFORE, (name, arguments, decision, '')], key=str)
    assert all(call.at for call in turn.calls)


@pytest.mark.one_protocol
async def test_the_question_names_the_arguments(tmp_path: Path) -> None:
    await _killed(tmp_path / 'runs.db', "pay('bob', 100)")

    @tool(idempotent=False)
    def pay(to: str, amount: int) -> None:
        """Pay."""

    @tool
    def half(amount: int, die_now: bool = False) -> int:
        """Halve."""
        return amount // 2

    @tool(needs_approval=True)
    def remove(what: str) -> None:
        """Remove."""

    async with Agent(ScriptedModel([]), tools=[half, pay, remove], journal=tmp_path / 'runs.db') as agent:
        result = await agent.resume('run-1')
    [waiting] = result.waiting
    assert waiting.question.startswith("pay(to='bob', amount=100) was running when the process died")
