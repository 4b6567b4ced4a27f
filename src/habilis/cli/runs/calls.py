"""`habilis runs calls`."""

import json
import time
from collections.abc import Sequence

from habilis.agent.durable.audit import call_as_json
from habilis.agent.durable.trajectory import RecordedStep, read_trajectories
from habilis.cli.printing import format_time, print_table
from habilis.cli.runs.journal import JournalAccess, in_journal, report_damage
from habilis.cli.streams import say
from habilis.cli.value_text import arguments_text
from habilis.sandbox import ToolCall


@in_journal
async def show_calls(access: JournalAccess, run: str, *, as_json: bool) -> int:
    """Print the tool calls of a run."""
    reading = await access.read(run)
    found = [
        (turn, call)
        for trajectory in await read_trajectories(reading)
        for turn in trajectory.turns
        for call in turn.calls
    ]
    if as_json:
        rows = [{'step': turn.number, **call_as_json(call), 'code': turn.code} for turn, call in found]
        print(json.dumps([{'run': reading.run, **row} for row in rows]))
    elif found:
        head = ('TIME', 'STEP', 'TOOL', 'ARGUMENTS', 'DECISION', 'RESULT', 'SECONDS')
        print_table(head, _rows(found), flexible=('ARGUMENTS', 'RESULT'))
    elif not reading.damage:
        say(f'{reading.run} has no tool calls')
    return report_damage(access, reading)


def _rows(found: Sequence[tuple[RecordedStep, ToolCall]]) -> list[tuple[str, ...]]:
    return [
        (
            _time(call.at),
            str(turn.number),
            call.tool,
            '?' if call.arguments is None else arguments_text(call.arguments),
            call.decision,
            call.error or call.result,
            f'{call.seconds:.3f}' if call.seconds else '',
        )
        for turn, call in found
    ]


def _time(at: float | None) -> str:
    """Time of a call; without the date if it is today, to leave room on a narrow screen."""
    return format_time(at).removeprefix(f'{format_time(time.time())[:11]}')
