"""`habilis runs files`, `diff RUN` and `restore`: the files of the workspace at the checkpoints of a run."""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence

from habilis.agent.durable.checkpoints import StoredCheckpoint, history_of, read_checkpoints
from habilis.agent.durable.trajectory import read_trajectories, step_count
from habilis.agent.hooks.sanitize import diff_lines, one_line
from habilis.cli.printing import Page, format_time, print_table
from habilis.cli.run.report import count_steps
from habilis.cli.runs.diff import diff_style
from habilis.cli.runs.journal import JournalAccess, in_journal, report_damage
from habilis.cli.streams import say, write_bytes
from habilis.core.errors import JournalError
from habilis.journal.runs import RunView

SHOWN_ID = 10
"""Characters of the id of a checkpoint that are shown."""

MAX_NAMED = 5
_ID = re.compile('[0-9a-f]{7,40}')
_KINDS = {'A': 'new', 'D': 'deleted'}


@in_journal
async def list_checkpoints(access: JournalAccess, run: str, *, as_json: bool) -> int:
    """Print the checkpoints of a run, with the files that changed."""
    reading, found = await _read(access, run)
    rows = [(stored, _changes(stored)) for stored in found]
    if as_json:
        print(json.dumps([_as_json(stored, changes) for stored, changes in rows]))
    else:
        table = [
            (
                str(stored.checkpoint.step),
                format_time(stored.at),
                stored.checkpoint.commit[:SHOWN_ID] or '-',
                stored.checkpoint.problem or _summary(changes, is_first=stored.before is None),
            )
            for stored, changes in rows
        ]
        print_table(('STEP', 'TIME', 'ID', 'FILES'), table, flexible=('FILES',))
    return report_damage(access, reading)


@in_journal
async def diff_files(access: JournalAccess, run: str, at: str | None) -> int:
    """Print what a run, or one of its steps, changed in files."""
    reading, found = await _read(access, run)
    stored = [each for each in found if each.checkpoint.commit]
    if at is not None:
        _check_step(reading, at)
        stored = [each for each in stored if each.before and each.checkpoint.step == int(at)][:1]
    text = ''
    if stored:
        first, last = stored[0].before or stored[0].checkpoint.commit, stored[-1].checkpoint
        text = history_of(last).diff(first, last.commit)
    if not text:
        say('no files were changed')
    elif not sys.stdout.isatty():  # a patch, byte by byte
        write_bytes(os.fsencode(text))
    else:
        page = Page()
        for line in diff_lines(text):
            page.line(line, diff_style(line))
    return 0


@in_journal
async def restore_files(access: JournalAccess, run: str, at: str) -> int:
    """Bring files back, and say how to undo it."""
    reading, found = await _read(access, run)
    stored = [each.checkpoint for each in found if each.checkpoint.commit]
    if not _ID.fullmatch(at):
        _check_step(reading, at)
        stored = [checkpoint for checkpoint in stored if checkpoint.step <= int(at)]
    history = history_of(stored[-1]) if stored else None
    if history is None or (_ID.fullmatch(at) and not history.has(at)):
        msg = f'{reading.run} has no checkpoint {at}; see: {access.command("files", reading.run)}'
        raise JournalError(msg)
    if _ID.fullmatch(at):
        before, changed = history.restore(at)
    else:
        before, changed = history.restore(stored[-1].commit, keep=stored[-1].too_large)
    folder = str(history.workspace.folder)
    if not changed:
        say(f'the files of {folder} are so already')
        return 0
    say(f'{_count(len(changed))} changed in {folder}: {_names(changed)}')
    say(f'undo with: {access.command("restore", reading.run, f" --at {before[:SHOWN_ID]}")}')
    return 0


def _check_step(reading: RunView, at: str) -> None:
    steps = step_count(reading)
    if not at.isdecimal() or int(at) > steps:
        msg = f'{reading.run} has no step {at}: it has {count_steps(steps)}'
        raise JournalError(msg)


async def _read(access: JournalAccess, run: str) -> tuple[RunView, list[StoredCheckpoint]]:
    reading = await access.read(run)
    agents = await read_trajectories(reading)
    found = await read_checkpoints(reading, agents[0].path) if agents else []
    if not found:
        msg = f'{reading.run} has no checkpoints: make them with habilis run --checkpoints, or Agent(checkpoints=True)'
        raise JournalError(msg)
    return reading, found


def _changes(stored: StoredCheckpoint) -> list[tuple[str, str]]:
    """How files have changed since the checkpoint before, with their paths; all files for the first one."""
    checkpoint = stored.checkpoint
    if not checkpoint.commit:
        return []
    changes = history_of(checkpoint).changes(stored.before, checkpoint.commit)
    return [
        ('too large' if path in checkpoint.too_large else _KINDS.get(kind, 'changed'), path) for kind, path in changes
    ]


def _summary(changes: Sequence[tuple[str, str]], *, is_first: bool) -> str:
    if is_first:
        return f'{_count(len(changes))} at the start'
    counts = Counter(kind for kind, _ in changes)
    kinds = ', '.join(f'{count} {kind}' for kind, count in counts.items())
    return f'{kinds}: {_names([path for _, path in changes])}'


def _names(paths: Sequence[str]) -> str:
    more = f' and {len(paths) - MAX_NAMED} more' if len(paths) > MAX_NAMED else ''
    return ', '.join(one_line(path, 60) for path in paths[:MAX_NAMED]) + more


def _count(number: int) -> str:
    return f'{number:,} {"file" if number == 1 else "files"}'


def _as_json(stored: StoredCheckpoint, changes: Sequence[tuple[str, str]]) -> dict[str, object]:
    checkpoint = stored.checkpoint
    return {
        'step': checkpoint.step,
        'at': stored.at,
        'id': checkpoint.commit,
        'workspace': checkpoint.workspace,
        'changes': {path: kind for kind, path in changes} if stored.before else {},
        'too_large': list(checkpoint.too_large),
        'problem': checkpoint.problem,
    }
