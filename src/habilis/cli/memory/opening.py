"""The memory that a subcommand works with, and what the subcommands share."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from datetime import datetime

import typer

from habilis.cli.interrupt import run_interruptible
from habilis.cli.printing import format_time, print_table
from habilis.cli.settings import read_settings, settings_with_options
from habilis.memory import Entry, Fact, Memory


def with_memory(
    where: str | None,
    user: str | None,
    work: Callable[[Memory], Coroutine[object, object, int]],
    *,
    by_meaning: bool = False,
    embedder_name: str | None = None,
) -> int:
    """Run `work` with the memory open, and return its exit code. `by_meaning`: with an embedder, if one is there."""
    options = {'memory': where, 'user': user, 'embedder': embedder_name}
    settings = read_settings(lambda: settings_with_options(options))

    async def run() -> int:
        embedder = None
        if by_meaning:
            from habilis.cli.memory.embedders import choose_embedder

            embedder = choose_embedder(settings)
        async with Memory(settings.memory, user=settings.user or '', embedder=embedder) as memory:
            return await work(memory)

    return run_interruptible(run)


def entry_json(entry: Entry) -> dict[str, object]:
    """An entry as JSON types."""
    return {'type': 'fact' if isinstance(entry, Fact) else 'turn', **asdict(entry)}


def print_entries(entries: Sequence[Entry]) -> None:
    """Print a table of entries."""
    rows = [(entry.id, format_time(entry.time)[:16], *_labels(entry), entry.text) for entry in entries]
    print_table(('ID', 'TIME', 'WHO', 'SESSION', 'TEXT'), rows, flexible=('TEXT',))


def _labels(entry: Entry) -> tuple[str, str]:
    if isinstance(entry, Fact):
        return f'({entry.kind}{", replaced" if entry.superseded_by else ""})', ''
    return entry.role, entry.session


def seconds_of(day: str | None, *, option: str) -> float | None:
    """The time of a date, or of a date and time, on this machine. Raises `BadParameter`."""
    if day is None:
        return None
    try:
        return datetime.fromisoformat(day).astimezone().timestamp()
    except (ValueError, OverflowError):
        msg = f'{day!r} is not a date: write it as 2030-01-31 or 2030-01-31T12:00'
        raise typer.BadParameter(msg, param_hint=option) from None
