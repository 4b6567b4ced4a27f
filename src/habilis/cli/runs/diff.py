"""`habilis runs diff`: compare two runs by the paths of their steps."""

import json
from collections.abc import Sequence
from difflib import unified_diff

from habilis.agent.durable.cells import CELL_CODEC
from habilis.agent.durable.records import ASK, CELL, COMPACTION, REPLY_CODEC, code_of
from habilis.agent.durable.trajectory import Trajectory, read_trajectories
from habilis.agent.hooks.tokens import format_cost
from habilis.cli.printing import Page, print_table
from habilis.cli.runs.journal import JournalAccess, report_damage, with_journal
from habilis.core.codec import Json
from habilis.core.errors import NotDurable
from habilis.journal import Record
from habilis.journal.index import PathRecords, name_of
from habilis.journal.runs import RunView, align_runs
from habilis.models.contract import Usage

_STYLES = {'+': 'green', '-': 'red', '@': 'cyan'}
_TIME_FIELDS = frozenset({'seconds', 'at'})


def diff_runs(a: str, b: str, *, journal: str | None, user: str | None) -> int:
    """Print the differences of two runs. Returns 0 if they are equal."""
    return with_journal(journal, user, lambda access: _diff(access, a, b))


async def _diff(access: JournalAccess, a: str, b: str) -> int:
    left, right = await access.read(a), await access.read(b)
    page, equal = Page(), True
    for pair in align_runs(left, right):
        ours, theirs = await _text(left, pair.path, pair.left), await _text(right, pair.path, pair.right)
        if ours == theirs:
            continue
        if equal:
            page.line(f'first difference: {pair.path}', 'bold')
            equal = False
        _show_difference(page, pair.path, _lines(ours, a), _lines(theirs, b), a, b)
    if left.state != right.state:
        equal = False
        page.line(f'{a} is {left.state}, {b} is {right.state}')
    _print_totals(left, right, await read_trajectories(left), await read_trajectories(right))
    if equal:
        page.line('the runs are equal: the same steps, with the same replies, code and results')
    damaged = report_damage(access, left) + report_damage(access, right)
    return 0 if equal and not damaged else 1


def _lines(text: str | None, run: str) -> list[str]:
    return [f'(not in {run})'] if text is None else text.split('\n')


def _show_difference(page: Page, path: str, ours: Sequence[str], theirs: Sequence[str], a: str, b: str) -> None:
    page.line()
    for line in unified_diff(ours, theirs, f'{a} {path}', f'{b} {path}', lineterm=''):
        page.line(line, diff_style(line))


def diff_style(line: str) -> str:
    """The style of a line of a unified diff."""
    return 'bold' if line.startswith(('---', '+++')) else _STYLES.get(line[:1], '')


# A step as text -------------------------------------------------------------------------------------------------------


async def _text(reading: RunView, path: str, entry: PathRecords | None) -> str | None:
    """Input and result of a step, without the times and costs that differ in every run."""
    if entry is None:
        return None
    if entry.end is None:
        records = [record for record in (entry.opened, entry.asked, entry.answered) if record is not None]
        return '\n'.join(['(not finished)', *[await _record_text(reading, record) for record in records]])
    value = await reading.value_or_none(entry.end)
    task = '' if entry.opened is None else _task_text(await reading.value_or_none(entry.opened))
    if entry.end.kind == 'failed':
        fields = value if isinstance(value, dict) else {}
        return f'{task}failed: {fields.get("type")}: {fields.get("text")}'
    try:
        if name_of(path) in {ASK, COMPACTION}:
            reply = REPLY_CODEC.read(value)
            return '\n'.join([reply.text, *(f'{call.name}({call.arguments})' for call in reply.calls)])
        if name_of(path) == CELL:
            outcome = CELL_CODEC.read(value).outcome
            return f'{outcome.code or code_of(entry)}\n\n{outcome.observation}'.rstrip()
    except (NotDurable, TypeError):  # a flow step of the same name
        pass
    return f'{task}{_value_text(_without_times(value))}'


def _task_text(opened: Json) -> str:
    """The task, if the step is the run of an agent."""
    task = opened.get('task') if isinstance(opened, dict) else None
    return f'task: {task}\n\n' if isinstance(task, str) else ''


async def _record_text(reading: RunView, record: Record) -> str:
    return f'{record.kind}: {_value_text(_without_times(await reading.value_or_none(record)))}'


def _without_times(value: Json) -> Json:
    """The value without times. Of an agent's result only the answer: its steps are compared separately."""
    if isinstance(value, dict):
        if 'r' in value and 'o' in value:
            return value['o']
        return {name: _without_times(item) for name, item in value.items() if name not in _TIME_FIELDS}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _value_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


# Totals ---------------------------------------------------------------------------------------------------------------


def _print_totals(left: RunView, right: RunView, ours: Sequence[Trajectory], theirs: Sequence[Trajectory]) -> None:
    print()
    print_table(
        ('RUN', 'STATUS', 'STEPS', 'TOKENS', 'COST', 'SECONDS'),
        [_row(reading, agents) for reading, agents in ((left, ours), (right, theirs))],
    )


def _row(reading: RunView, agents: Sequence[Trajectory]) -> tuple[str, ...]:
    usage = sum((trajectory.usage for trajectory in agents), Usage())
    return (
        reading.run,
        reading.state,
        str(sum(len(trajectory.turns) for trajectory in agents)),
        f'{usage.tokens:,}',
        format_cost(usage.cost),
        f'{sum(trajectory.seconds for trajectory in agents):.1f}',
    )
