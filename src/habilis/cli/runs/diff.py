"""`habilis runs diff`: compare two runs by the paths of their steps."""

from collections.abc import Sequence
from difflib import unified_diff

from habilis.agent.durable.step_text import step_text
from habilis.agent.durable.trajectory import Trajectory, read_trajectories
from habilis.agent.hooks.tokens import format_cost
from habilis.cli.printing import Page, print_table
from habilis.cli.runs.journal import JournalAccess, report_damage, with_journal
from habilis.journal.runs import RunView, align_runs
from habilis.models.contract import Usage

_STYLES = {'+': 'green', '-': 'red', '@': 'cyan'}


def diff_runs(a: str, b: str, *, journal: str | None, user: str | None) -> int:
    """Print the differences of two runs. Returns 0 if they are equal."""
    return with_journal(journal, user, lambda access: _diff(access, a, b))


async def _diff(access: JournalAccess, a: str, b: str) -> int:
    left, right = await access.read(a), await access.read(b)
    page, equal = Page(), True
    for pair in align_runs(left, right):
        ours, theirs = await step_text(left, pair.path, pair.left), await step_text(right, pair.path, pair.right)
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
