"""Subagents in the terminal: whole lines below their parent, with a name for each."""

import io

from rich.console import Console

from habilis import Agent, ScriptedModel
from habilis.agent.hooks import TerminalView
from tests.agent.scripts import block

CODE = """
found = []
for task in ('ONE', 'TWO'):
    found.append(await delegate(task))
final_answer(found)
"""


async def test_subagents_are_shown_line_by_line_below_their_parent() -> None:
    replies = [CODE, 'print(missing)', 'final_answer("\\x1b[31mred")', 'final_answer(2)']
    model = ScriptedModel([block(code) for code in replies])
    out = io.StringIO()
    view = TerminalView(Console(file=out, width=60, highlight=False))
    async with Agent(model, helpers=True, hooks=[view]) as agent:
        await agent.run('go')
    lines = out.getvalue().splitlines()
    inner = [line for line in lines if line.startswith('  code ')]
    assert [line.partition(' · ')[0] for line in inner] == ['  code 1'] * 4 + ['  code 2'] * 3
    assert inner[0] == '  code 1 · starts: ONE'
    assert "failed: NameError: name 'missing'" in inner[1]
    assert inner[3].startswith('  code 1 · done · 2 steps')
    assert lines.index("→ delegate(task='ONE')") < lines.index(inner[0])
    assert next(line for line in lines if line.startswith('← delegate')).startswith('← delegate: ')
    assert '\x1b' not in out.getvalue()


async def test_a_quiet_view_shows_only_the_answer() -> None:
    out = io.StringIO()
    view = TerminalView(Console(file=out, highlight=False), quiet=True)
    model = ScriptedModel([block('final_answer(await delegate("x"))'), block('final_answer(7)')])
    async with Agent(model, helpers=True, hooks=[view]) as agent:
        await agent.run('go')
    assert out.getvalue().splitlines()[-1] == '7'
    assert 'code 1' not in out.getvalue()
