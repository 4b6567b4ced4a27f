"""What runs ask people, and the answers: given by any process, at any time, while nobody works on the run."""

import time
from collections.abc import Sequence
from dataclasses import replace

from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.journal.access import held, info_of, value_of
from habilis.journal.contract import Record, Store
from habilis.journal.index import Index


async def open_questions(store: Store, run: str, *, user: str | None = None) -> list[tuple[str, Json]]:
    """What a run waits for: the path of each question, and all that was said with it. Raises `RunNotFound`."""
    await info_of(store, run, user)
    return [(record.path, await value_of(store, run, record)) for record in _open(await store.load(run))]


async def answer_run(
    store: Store, run: str, answer: Json, *, path: str | None = None, user: str | None = None
) -> list[str]:
    """Write down what a person says; the run goes on with it when it is resumed.

    Args:
        store: which has the run.
        run: its name.
        answer: to an `approval` True or False (or an object whose `approved` is one); to what is `uncertain` an object
            with `again` set to True, or with the `value` that came of it; to anything else what it asks for.
        path: of the question; may be left out if there is only one.
        user: whose run it must be.

    Returns the paths of the questions that are still open. Raises `RunNotFound`, `RunBusy` while somebody works on the
    run, and `JournalError` if there is no such question, or the answer does not fit it.
    """
    await info_of(store, run, user)
    async with held(store, run) as lease:
        records = await store.load(run)
        asked = _chosen(run, records, path)
        _check(asked.path, await value_of(store, run, asked), answer)
        now = time.time()
        record = Record(
            seq=len(records) + 1, path=asked.path, kind='answered', key=asked.key, value=answer, at=round(now, 6)
        )
        left = [other.path for other in _open([*records, record])]
        info = await store.info(run)
        status = 'stopped' if info.status == 'waiting' and not left else info.status
        await store.append(run, [record], epoch=lease.epoch, info=replace(info, status=status, updated=now))
    return left


def _open(records: Sequence[Record]) -> list[Record]:
    found: list[Record] = []
    for _, entry in Index(records).inside(''):
        asked, answered = entry.asked, entry.answered
        if asked is not None and entry.end is None and (answered is None or answered.seq < asked.seq):
            found.append(asked)
    return sorted(found, key=lambda record: record.seq)


def _chosen(run: str, records: Sequence[Record], path: str | None) -> Record:
    waiting = _open(records)
    known = [record for record in waiting if path in {None, record.path}]
    if len(known) == 1:
        return known[0]
    if known:
        several = ', '.join(record.path for record in known)
        msg = f'{run} asks several things; say which one with its path: {several}'
        raise JournalError(msg)
    if path is not None and any(record.path == path and record.kind == 'answered' for record in records):
        msg = f'{path} of {run} has been answered already; resume the run'
        raise JournalError(msg)
    there_are = ', '.join(record.path for record in waiting)
    what = f'{run} asks nothing at {path}' if path is not None else f'{run} asks nothing'
    msg = f'{what}; what it asks: {there_are}' if there_are else f'{what}: there is nothing to answer'
    raise JournalError(msg)


def _check(path: str, request: Json, answer: Json) -> None:
    """An answer is for good, so one that means nothing is refused."""
    kind = request.get('kind') if isinstance(request, dict) else None
    fields = answer if isinstance(answer, dict) else {}
    if kind == 'approval' and not isinstance(answer, bool) and not isinstance(fields.get('approved'), bool):
        msg = f'{path} wants a yes or a no: answer True or False'
        raise JournalError(msg)
    if kind == 'uncertain' and fields.get('again') is not True and 'value' not in fields:
        msg = f'{path} wants to know what became of it: answer {{"again": true}} to do it now, or {{"value": …}}'
        raise JournalError(msg)
