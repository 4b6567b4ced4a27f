"""Runs as files, and files as runs."""

import os
import sys
from collections.abc import Sequence

from habilis.agent.trajectory import as_lines, rows
from habilis.cli.runs.desk import Desk, at_desk
from habilis.cli.runs.listing import told_damage
from habilis.cli.task.showing import say
from habilis.core.errors import HabilisError
from habilis.journal.copies import export_run
from habilis.journal.lookup import info_of
from habilis.journal.runs import import_foreign_run


class FileTrouble(HabilisError):
    """A file cannot be read or written."""


def export_whole(run: str, output: str | None, *, where: str | None, user: str | None) -> int:
    """`habilis runs export`."""

    async def work(desk: Desk) -> int:
        await info_of(desk.store, run, desk.user)
        _write(await export_run(desk.store, run), output)
        return 0

    return at_desk(where, user, work)


def export_rows(runs: Sequence[str], output: str | None, *, where: str | None, user: str | None) -> int:
    """`habilis runs export --format jsonl`; without runs all there are, the oldest first."""

    async def work(desk: Desk) -> int:
        chosen = list(runs) or [info.run for info in reversed(await desk.store.runs(user=desk.user))]
        for run in chosen:
            await info_of(desk.store, run, desk.user)
        code, texts = 0, list[str]()
        for run in chosen:
            reading = await desk.read(run)
            texts.append(as_lines(await rows(reading)))
            code = max(code, told_damage(reading))
        _write(''.join(texts), output)
        return code

    return at_desk(where, user, work)


def _write(text: str, output: str | None) -> None:
    if output is None or output == '-':
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # a run is nobody else's business
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='surrogatepass', newline='\n') as file:
            file.write(text)
    except OSError as error:
        msg = f'{output} cannot be written: {error.strerror}'
        raise FileTrouble(msg) from None


def import_file(file: str, run_id: str | None, *, where: str | None, user: str | None) -> int:
    """`habilis runs import`."""
    text = _read(file)

    async def work(desk: Desk) -> int:
        info = await import_foreign_run(desk.store, text, run=run_id, user=desk.user)
        print(info.run, flush=True)
        say(f'{info.status}; look at it with: {desk.command("show", info.run)}')
        return 0

    return at_desk(where, user, work, makes=True)


def _read(file: str) -> str:
    try:
        if file == '-':
            return sys.stdin.buffer.read().decode('utf-8', 'surrogatepass')
        with open(file, 'rb') as opened:
            return opened.read().decode('utf-8', 'surrogatepass')
    except OSError as error:
        msg = f'{file} cannot be read: {error.strerror}'
        raise FileTrouble(msg) from None
    except UnicodeDecodeError:
        msg = f'{file} is not an exported run of Habilis: it is no text'
        raise FileTrouble(msg) from None
