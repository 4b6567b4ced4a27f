"""`habilis runs show`: one run step by step, read from its records."""

import json
from collections.abc import Sequence

from habilis.agent.durable.trajectory import Trajectory, read_trajectories
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import format_cost
from habilis.cli.printing import COLOURS, Page, format_time
from habilis.cli.run.report import count_steps
from habilis.cli.runs.journal import JournalAccess, in_journal, report_damage
from habilis.cli.runs.pending import answer_lines, app_option
from habilis.cli.runs.run_tree import RunTree
from habilis.cli.value_text import value_text
from habilis.core.codec import Json, dump
from habilis.core.errors import JournalError, NotDurable
from habilis.flows.run_json import run_as_json, turn_as_json
from habilis.flows.status import read_steps
from habilis.journal.questions import open_questions
from habilis.journal.runs import RunView, TolerantStore
from habilis.journal.values import plain_value
from habilis.models.contract import Usage


@in_journal
async def show_run(access: JournalAccess, run: str, step: str | None, *, as_json: bool) -> int:
    """Print a run, or one step of it."""
    reading = await access.read(run)
    agents = await read_trajectories(reading)
    if step is not None:
        await _show_step(access, reading, agents, step, as_json=as_json)
    elif as_json:
        print(json.dumps(await run_as_json(reading)))
    else:
        page, readable = Page(), TolerantStore(access.store)
        questions = await open_questions(readable, reading.run, user=access.user)
        steps = await read_steps(readable, reading.info)
        _show_head(page, reading, agents)
        tree = RunTree(page, reading, agents, steps)
        await tree.show()
        if tree.truncated:
            page.line(f'\nshow all of a step with: {access.command("show", reading.run, " --step N")}', 'dim')
        app = app_option(reading, agents[0].inputs if agents and reading.info.kind == 'agent' else None)
        for line in answer_lines(access, reading, questions, app):
            page.line(line, 'yellow')
    return report_damage(access, reading)


# As text --------------------------------------------------------------------------------------------------------------


def _show_head(page: Page, reading: RunView, agents: Sequence[Trajectory]) -> None:
    info = reading.info
    usage = sum((trajectory.usage for trajectory in agents), Usage())
    name = info.kind if info.kind == info.name else f'{info.kind} {info.name}'
    facts = [reading.run, reading.state, name, format_time(info.created)]
    if agents:
        steps = count_steps(sum(len(trajectory.turns) for trajectory in agents))
        facts += [steps, f'{sum(trajectory.seconds for trajectory in agents):.1f} s']
    if usage.tokens:
        facts.append(f'{usage.tokens:,} tokens')
    if usage.cost:
        facts.append(format_cost(usage.cost))
    page.text(' · '.join(one_line(fact, 100) for fact in facts), f'bold {COLOURS.get(reading.state, "")}'.strip())
    for name, value in (('session', info.session), ('user', info.user), ('forked from', info.parent)):
        if value:
            page.text(f'{name}: {one_line(value, 100)}', 'dim', indent=2)
    if reading.score is not None:
        page.line(f'  score: {reading.score:g}', 'dim')
    if info.kind == 'flow' or not agents:
        page.block('input', info.title)
    if info.error:
        page.block('error', info.error, 'red')


async def _show_step(
    access: JournalAccess, reading: RunView, agents: Sequence[Trajectory], step: str, *, as_json: bool
) -> None:
    turns = [turn for trajectory in agents for turn in trajectory.turns if step in {str(turn.number), turn.path}]
    if len(turns) > 1:
        paths = ', '.join(turn.path for turn in turns)
        msg = f'{reading.run} has several agents with a step {step}; give its path: {paths}'
        raise JournalError(msg)
    if turns and not as_json:
        await RunTree(Page(), reading, agents, ()).show_turn(turns[0], full=True)
        return
    path = turns[0].path if turns else step
    entry = reading.index.find(path)
    if entry is None:
        known = (
            f'it has {count_steps(len(agents[0].turns))}'
            if agents
            else f'see its paths with: {access.command("events", reading.run)}'
        )
        msg = f'{reading.run} has no step {step}; {known}'
        raise JournalError(msg)
    if turns:
        print(json.dumps(turn_as_json(turns[0])))
        return
    records = [record for record in (entry.opened, entry.started, entry.asked, entry.answered, entry.end) if record]
    values = [(each.kind, await reading.value_or_none(each)) for each in records]
    if as_json:
        print(json.dumps([{'kind': kind, 'value': value} for kind, value in values]))
        return
    for kind, value in values:
        Page().line(f'{kind}: {_readable(value)}')


def _readable(value: Json) -> str:
    """The value that a step has returned; other records as they are."""
    try:
        return value_text(plain_value(value))
    except NotDurable:
        return dump(value)
