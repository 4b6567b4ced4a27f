"""Create runs together with their first records, in one write: a run exists with all that resuming it needs, or not."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.errors import JournalError, NotDurable, RunBusy, RunNotFound
from habilis.journal.contract import BLOB_BYTES, Record, RunInfo, Store
from habilis.journal.encoding import digest_of
from habilis.journal.errors import check_run_name


async def create_run(
    store: Store,
    info: RunInfo,
    opened: Json,
    *,
    path: str = '',
    attached: Mapping[str, bytes] | None = None,
    advice: str = 'resume it, or choose another id',
) -> tuple[RunInfo, list[Record]]:
    """Create a run with its `opened` record, whose value is the input of the run (None: without a record).

    Returns the info and the records. Raises `RunBusy` if the run exists; its message ends with the advice.
    """
    now = time.time()
    info = replace(info, created=info.created or now, updated=now)
    value, blob, blobs = as_blob(opened)
    digests = {name: digest_of(data) for name, data in (attached or {}).items()}
    blobs |= {digests[name]: data for name, data in (attached or {}).items()}
    record = Record(seq=1, path=path, kind='opened', value=value, blob=blob, attached=digests, at=round(now, 6))
    records = [] if opened is None else [record]
    await create_with(store, info, records, blobs, advice=advice)
    return info, records


async def create_with(
    store: Store, info: RunInfo, records: Sequence[Record], blobs: Mapping[str, bytes], *, advice: str
) -> None:
    """Create a run with records. Raises `RunBusy`, and `JournalError` if the id belongs to another user."""
    check_run_name(info.run)
    if await store.create(info, records, blobs=blobs):
        return
    if not await _is_own(store, info):  # do not say that there is such a run
        msg = f'{info.run!r} cannot be used as the id of a run; choose another id'
        raise JournalError(msg)
    msg = f'the run {info.run} exists already; {advice}'
    raise RunBusy(msg)


async def _is_own(store: Store, info: RunInfo) -> bool:
    """Whether the run of this id belongs to the same user."""
    try:
        return (await store.info(info.run)).user == info.user
    except RunNotFound:  # deleted meanwhile
        return True


def as_blob(value: Json) -> tuple[Json, str, dict[str, bytes]]:
    """The value, digest and blobs for a record of this value: a long one becomes a blob. Raises `NotDurable`."""
    try:
        text = codec.dump(value)
    except (ValueError, TypeError, RecursionError) as error:
        msg = f'the value cannot be recorded, because it is not JSON: {error}; encode it with a `Codec`'
        raise NotDurable(msg) from None
    if len(text) <= BLOB_BYTES:
        return value, '', {}
    data = text.encode()
    digest = digest_of(data)
    return None, digest, {digest: data}
