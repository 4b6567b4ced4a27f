"""`habilis runs diff`: two runs side by side, by the paths of their steps."""

import json
from collections.abc import Sequence
from difflib import unified_diff

from habilis.agent.acting import ACTED
from habilis.agent.hooks.tokens import money
from habilis.agent.recording import ASK, CELL, REPLY
from habilis.agent.trajectory import Story, stories
from habilis.cli.runs.desk import Desk
from habilis.cli.runs.listing import told_damage
from habilis.cli.runs.printing import Page, print_table
from habilis.core.codec import Json
from habilis.core.errors import NotDurable
from habilis.journal import Record
from habilis.journal.index import Entry, name_of
from habilis.journal.runs import RunView, align_runs
from habilis.models.contract import Usage

_STYLES = {'+': 'green', '-': 'red', '@': 'cyan'}
_TIMES = frozenset({'seconds', 'at'})


async def compare_runs(desk: Desk, a: str, b: str) -> int:
    """Print where they differ; 0 if they do not."""
    left, right = await desk.read(a), await desk.read(b)
    page, first = Page(), True
    for pair in align_runs(left, right):
        ours, theirs = await _text(left, pair.path, pair.left), await _text(right, pair.path, pair.right)
        if ours == theirs:
            continue
        if first:
            page.line(f'first difference: {pair.path}', 'bold')
            first = False
        _show(page, pair.path, _lines(ours, a), _lines(theirs, b), a, b)
    if left.state != right.state:
        first = False
        page.line(f'{a} is {left.state}, {b} is {right.state}')
    _totals(left, right, await stories(left), await stories(right))
    if first:
        page.line('the runs are equal: the same steps, with the same replies, code and results')
    damaged = told_damage(left) + told_damage(right)
    return 0 if first and not damaged else 1


def _lines(text: str | None, run: str) -> list[str]:
    return [f'(not in {run})'] if text is None else text.split('\n')


def _show(page: Page, path: str, ours: Sequence[str], theirs: Sequence[str], a: str, b: str) -> None:
    page.line()
    for line in unified_diff(ours, theirs, f'{a} {path}', f'{b} {path}', lineterm=''):
        page.line(line, 'bold' if line.startswith(('---', '+++')) else _STYLES.get(line[:1], ''))


# A step as text -------------------------------------------------------------------------------------------------------


async def _text(reading: RunView, path: str, entry: Entry | None) -> str | None:
    """What a step was given and what came of it, without what differs in every run: times and costs."""
    if entry is None:
        return None
    if entry.end is None:
        records = [record for record in (entry.opened, entry.asked, entry.answered) if record is not None]
        return '\n'.join(['(not ended)', *[await _plain(reading, record) for record in records]])
    value = await reading.value_or_none(entry.end)
    given = '' if entry.opened is None else _given(await reading.value_or_none(entry.opened))
    if entry.end.kind == 'failed':
        fields = value if isinstance(value, dict) else {}
        return f'{given}failed: {fields.get("type")}: {fields.get("text")}'
    try:
        if name_of(path) == ASK:
            reply = REPLY.read(value)
            return '\n'.join([reply.text, *(f'{call.name}({call.arguments})' for call in reply.calls)])
        if name_of(path) == CELL:
            acted = ACTED.read(value)
            return f'{acted.code}\n\n{acted.observation}'.rstrip()
    except (NotDurable, TypeError):  # a step of a flow that has the same name
        pass
    return f'{given}{_readable(_timeless(value))}'


def _given(opened: Json) -> str:
    """The task of an agent."""
    task = opened.get('task') if isinstance(opened, dict) else None
    return f'task: {task}\n\n' if isinstance(task, str) else ''


async def _plain(reading: RunView, record: Record) -> str:
    return f'{record.kind}: {_readable(_timeless(await reading.value_or_none(record)))}'


def _timeless(value: Json) -> Json:
    """Of the result of an agent only the answer: its steps are compared by themselves."""
    if isinstance(value, dict):
        if 'r' in value and 'o' in value:
            return value['o']
        return {name: _timeless(item) for name, item in value.items() if name not in _TIMES}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _readable(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


# Totals ---------------------------------------------------------------------------------------------------------------


def _totals(left: RunView, right: RunView, ours: Sequence[Story], theirs: Sequence[Story]) -> None:
    print()
    print_table(
        ('RUN', 'STATUS', 'STEPS', 'TOKENS', 'COST', 'SECONDS'),
        [_row(reading, told) for reading, told in ((left, ours), (right, theirs))],
    )


def _row(reading: RunView, told: Sequence[Story]) -> tuple[str, ...]:
    usage = sum((story.usage for story in told), Usage())
    return (
        reading.run,
        reading.state,
        str(sum(len(story.turns) for story in told)),
        f'{usage.tokens:,}',
        money(usage.cost),
        f'{sum(story.seconds for story in told):.1f}',
    )
