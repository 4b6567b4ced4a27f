"""`habilis runs calls`."""

import json
from collections.abc import Sequence

from habilis.agent.durable.audit import call_as_json
from habilis.agent.durable.trajectory import Turn, read_trajectories
from habilis.cli.printing import arguments_text, format_time, print_table
from habilis.cli.runs.journal import JournalAccess, report_damage, with_journal
from habilis.cli.streams import say
from habilis.sandbox import ToolCall


def show_calls(run: str, *, as_json: bool, journal: str | None, user: str | None) -> int:
    """Print the tool calls of a run."""

    async def work(access: JournalAccess) -> int:
        reading = await access.read(run)
        found = [
            (turn, call)
            for trajectory in await read_trajectories(reading)
            for turn in trajectory.turns
            for call in turn.calls
        ]
        if as_json:
            rows = [{'run': run, 'step': turn.number, **call_as_json(call), 'code': turn.code} for turn, call in found]
            print(json.dumps(rows))
        elif found:
            print_table(('TIME', 'STEP', 'TOOL', 'ARGUMENTS', 'DECISION', 'RESULT', 'SECONDS'), _rows(found))
        elif not reading.damage:
            say(f'{run} has no tool calls')
        return report_damage(reading)

    return with_journal(journal, user, work)


def _rows(found: Sequence[tuple[Turn, ToolCall]]) -> list[tuple[str, ...]]:
    return [
        (
            format_time(call.at),
            str(turn.number),
            call.name,
            '?' if call.arguments is None else arguments_text(call.arguments),
            call.decision,
            call.error or call.result,
            f'{call.seconds:.3f}' if call.seconds else '',
        )
        for turn, call in found
    ]
