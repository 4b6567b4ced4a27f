"""Open questions of runs, and their answers, which any process can record while the run is not being executed."""

import time
from collections.abc import Sequence
from dataclasses import replace

from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.journal.contract import Record, Store
from habilis.journal.index import Index
from habilis.journal.leases.claims import hold_run
from habilis.journal.lookup import info_of, value_of


async def open_questions(store: Store, run: str, *, user: str | None = None) -> list[tuple[str, Json]]:
    """The open questions of a run: the path and the request of each. Raises `RunNotFound`."""
    await info_of(store, run, user)
    return [(record.path, await value_of(store, run, record)) for record in _open(await store.load(run))]


async def answer_run(
    store: Store, run: str, answer: Json, *, path: str | None = None, user: str | None = None
) -> list[str]:
    """Record the answer of a person; the run uses it when it is resumed.

    Args:
        store: the store of the run.
        run: the id of the run.
        answer: for an `approval`: True or False, or `Approval(…).to_json()`. For an `uncertain` step: an object with
            `again` set to True to run it, or with its `value`. For other questions: any JSON.
        path: the path of the question; optional if there is only one.
        user: the user that the run must belong to; None for any.

    Returns the paths of the questions that are still open. Raises `RunNotFound`, `RunBusy` while the run is being
    executed, and `JournalError` if there is no such question, or the answer does not fit it.
    """
    await info_of(store, run, user)
    async with hold_run(store, run) as lease:
        records = await store.load(run)
        asked = _find_question(run, records, path)
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


async def check_answer(
    store: Store, run: str, answer: Json, *, path: str | None = None, user: str | None = None
) -> None:
    """Raise the error that `answer_run` would raise for this answer. Records nothing."""
    await info_of(store, run, user)
    asked = _find_question(run, await store.load(run), path)
    _check(asked.path, await value_of(store, run, asked), answer)


def _open(records: Sequence[Record]) -> list[Record]:
    found: list[Record] = []
    for _, entry in Index(records).inside(''):
        asked, answered = entry.asked, entry.answered
        if asked is not None and entry.end is None and (answered is None or answered.seq < asked.seq):
            found.append(asked)
    return sorted(found, key=lambda record: record.seq)


def _find_question(run: str, records: Sequence[Record], path: str | None) -> Record:
    waiting = _open(records)
    known = [record for record in waiting if path in {None, record.path}]
    if len(known) == 1:
        return known[0]
    if known:
        several = ', '.join(record.path for record in known)
        msg = f'{run} has several open questions; give the path of one: {several}'
        raise JournalError(msg)
    if path is not None and any(record.path == path and record.kind == 'answered' for record in records):
        msg = f'{path} of {run} is already answered; resume the run'
        raise JournalError(msg)
    others = ', '.join(record.path for record in waiting)
    what = f'{run} has no open question at {path}' if path is not None else f'{run} has no open question'
    msg = f'{what}; its open questions: {others}' if others else what
    raise JournalError(msg)


def _check(path: str, request: Json, answer: Json) -> None:
    """Raise `JournalError` for an answer of the wrong form, because an answer cannot be changed."""
    kind = request.get('kind') if isinstance(request, dict) else None
    fields = answer if isinstance(answer, dict) else {}
    if kind == 'approval':
        try:
            Approval.from_json(answer)
        except ValueError as error:
            msg = f'{path} needs an approval: {error}'
            raise JournalError(msg) from None
    if kind == 'uncertain' and fields.get('again') is not True and 'value' not in fields:
        msg = f'{path} may have run already: answer {{"again": true}} to run it now, or {{"value": …}} with its result'
        raise JournalError(msg)
