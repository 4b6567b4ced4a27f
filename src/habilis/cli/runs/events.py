"""`habilis runs events`."""

import asyncio
from dataclasses import asdict

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.printing import format_time
from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.core.codec import Json, dump
from habilis.core.errors import CorruptRecord
from habilis.journal import Record
from habilis.journal.lookup import info_of
from habilis.journal.runs import State, TolerantStore, state_of

POLL_SECONDS = 0.3
MAX_VALUE_CHARS = 100
MAX_PATH_CHARS = 200
ACTIVE: frozenset[State] = frozenset({'queued', 'running'})


@in_journal
async def show_events(access: JournalAccess, run: str, *, follow: bool, as_json: bool) -> int:
    """Print the records of a run in order; with `follow` until it is no longer active."""
    store, known = TolerantStore(access.store), await access.resolve(run)
    last, active = 0, True
    while active:
        info = await info_of(access.store, known, access.user)
        active = follow and await state_of(access.store, info) in ACTIVE
        for record in await store.load(known, after=last):
            print(dump(_to_json(record)) if as_json else _line(record), flush=True)
            last = record.seq
        if known in store.damage:
            raise CorruptRecord(access.with_options(str(store.damage[known])))
        if active:
            await asyncio.sleep(POLL_SECONDS)
    return 0


def _to_json(record: Record) -> dict[str, Json]:
    return {**asdict(record), 'attached': dict(record.attached)}


def _line(record: Record) -> str:
    value = f'(blob {record.blob[:12]}…)' if record.blob else '' if record.value is None else dump(record.value)
    attached = f' +{",".join(record.attached)}' if record.attached else ''
    path = one_line(record.path, MAX_PATH_CHARS) or '/'
    text = one_line(value + attached, MAX_VALUE_CHARS)
    return f'{record.seq:>5}  {format_time(record.at)}  {record.kind:<8}  {path}  {text}'.rstrip()
