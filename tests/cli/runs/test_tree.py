"""`habilis runs show`: a tree by parent and branch, with the user's data and not its encoding."""

import json
import os
import re
import shlex
import subprocess
import sys

from tests.cli.process import environment, on_terminal
from tests.cli.runs.making import listed, runs
from tests.place import Place

PROGRAM = """
import asyncio
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from habilis import Agent, FlowPaused, ScriptedModel, approval, flow, parallel, step, tool

@dataclass
class City:
    name: str
    price: Decimal
    since: datetime

def scripted(*blocks):
    def reply(messages):
        return '```python\\n' + blocks[sum(each.role == 'assistant' for each in messages)] + '\\n```'
    return ScriptedModel(reply)

def price(product: str) -> Decimal:
    return Decimal('3.50')

@tool(needs_approval=True)
def pay(to: str, amount: Decimal) -> str:
    return 'paid ' + to

helper = Agent(scripted("x = price('tea')\\nprint('it is', x)", 'final_answer(x)'), tools=[price], name='helper')

async def ask_helper(task: str) -> Decimal:
    return (await helper.run(task)).output

boss = Agent(
    scripted(
        "cost = await ask_helper('Price of tea?')\\nprint('twice')", "print(pay('bob', cost * 2))", 'final_answer(cost)'
    ),
    tools=[ask_helper, pay],
)
city = Agent(
    scripted("final_answer({'name': 'Oslo', 'price': '1.20', 'since': '2026-01-02T03:04:00'})"), output_type=City
)

@step
async def fetch(name: str) -> City:
    return City(name, Decimal('1.20'), datetime(2026, 1, 2, 3, 4))

@step
async def look(name: str) -> str:
    await fetch(name)
    return f'{name}: {(await helper.run(f"Price in {name}?")).output}'

@flow
async def report(cities: list[str]) -> list[str]:
    found = await parallel(look, cities)
    return found if await approval('Publish?', details={'cities': cities, 'cost': Decimal('2.50')}) else []

async def main():
    await boss.run('Pay bob', run_id='run-boss')
    await city.run('Which city?', run_id='run-city')
    try:
        await (await report.start(['Oslo', 'Rome'], run_id='run-report')).result()
    except FlowPaused:
        pass

if __name__ == '__main__':
    asyncio.run(main())
"""


def prepare(place: Place) -> None:
    (place.folder / 'firm.py').write_text(PROGRAM)
    subprocess.run([sys.executable, 'firm.py'], check=True, env=environment())


def printed(text: str) -> list[list[str]]:
    """The arguments of all commands in a text."""
    commands = [line.partition('habilis runs ')[2] for line in text.splitlines() if 'habilis runs ' in line]
    return [shlex.split(command) for command in commands]


def test_agents_calls_and_branches_are_where_they_belong_and_their_commands_work(place: Place) -> None:
    prepare(place)
    shown = runs('show', 'run-boss').stdout
    inner = """\
  call  ask_helper(task='Price of tea?') → Decimal('3.50')
    helper#1: done"""
    assert inner in shown
    order = [
        "ask_helper('Price of tea?')\n",
        inner,
        'Price of tea?\n',
        "x = price('tea')",
        "call  price(product='tea')",
    ]
    after = 0
    for part in [*order, 'it is 3.50', 'answer\n        3.50\n', 'output\n    twice', 'step 2', "print(pay('bob'"]:
        assert part in shown[after:], part
        after = shown.index(part, after)
    assert shown.count("price(product='tea')") == 1

    tree = re.sub(r" \(name='\w+'\):", ':', runs('show', 'run-report').stdout)  # recorded if the step takes a while
    for part in (
        "  input\n    cities=['Oslo', 'Rome']\n  parallel#1: done",
        '\n    branch 1\n      look#1: done',
        ' → Oslo: 3.50\n',
        "fetch#1: done → {'name': 'Oslo', 'price': '1.20', 'since': '2026-01-02T03:04:00'}\n        helper#1: done",
        '\n    branch 2\n      look#1: done',
        '\n  approval#1: waiting\n',
        "question: Publish?\n  cities: ['Oslo', 'Rome']\n  cost: 2.50\n",
    ):
        assert part in tree, part
    assert tree.index('branch 1') < tree.index('Price in Oslo?') < tree.index('branch 2') < tree.index('Price in Rome?')
    assert '"$"' not in shown + tree

    approve, deny = printed(shown)
    assert (approve[0], deny[0]) == ('approve', 'deny')
    refused = runs('answer', 'run-boss', 'perhaps', *approve[2:])
    assert (refused.returncode, 'always PREFIX' in refused.stderr) == (2, True)
    done = runs('answer', 'run-boss', 'always', *approve[2:])
    assert (done.returncode, done.stdout) == (0, "Decimal('3.50')\n"), done.stderr
    approve, _ = printed(tree)
    done = runs(*approve)
    assert (done.returncode, done.stdout) == (0, "['Oslo: 3.50', 'Rome: 3.50']\n"), done.stderr
    assert {run['status'] for run in listed()} == {'done'}

    assert (
        "answer\n    {'name': 'Oslo', 'price': '1.20', 'since': '2026-01-02T03:04:00'}\n" in runs('show', 'city').stdout
    )
    assert runs('show', 'run-report', '--step', 'report#1/parallel#1/~1/look#1').stdout.endswith('done: Oslo: 3.50\n')
    json.loads(runs('show', 'run-report', '--json').stdout)


def test_a_person_sees_the_call_and_its_code_before_they_approve_it(place: Place) -> None:
    prepare(place)
    with on_terminal('runs', 'approve', 'run-boss', '--app', 'firm:boss') as terminal:
        shown = terminal.wait_for('Approve? [y/N] ')
        assert (
            "  pay(to='bob', amount=Decimal('7.00'))\n  called by this code:\n    print(pay('bob', cost * 2))\n"
            in shown
        )
        terminal.type('n\n')
        terminal.wait_for('not approved; nothing was recorded')
        assert terminal.exit_code() == 1
    assert {run['run']: run['status'] for run in listed()}['run-boss'] == 'waiting'
    with on_terminal('runs', 'approve', 'run-boss', '--app', 'firm:boss', '--yes', '-q') as terminal:
        assert 'Approve?' not in terminal.wait_for("Decimal('3.50')")
        assert terminal.exit_code() == 0


def test_deep_trees_are_wrapped_at_the_width_of_a_terminal(place: Place) -> None:
    prepare(place)
    with on_terminal('runs', 'show', 'run-report', columns=60) as terminal:
        shown = terminal.wait_for('question: Publish?')
    from rich.text import Text

    assert max(Text.from_ansi(line).cell_len for line in shown.splitlines()) <= 60
    assert os.fspath(place.folder) not in shown
