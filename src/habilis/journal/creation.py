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

_FEW, _SHALLOW = 8, 2
_LARGE = 10**18
_UNKNOWN = BLOB_BYTES + 1


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
    text = _long_json(value)
    if len(text) <= BLOB_BYTES:
        return value, '', {}
    data = text.encode()
    digest = digest_of(data)
    return None, digest, {digest: data}


def _max_length(value: Json, depth: int = 0) -> int:
    """The maximum length of the JSON of a value with few parts, to save its encoding; otherwise `_UNKNOWN`."""
    if type(value) is str:
        return 12 * len(value) + 2  # a character beyond 0xffff is written as two escapes
    if value is None or type(value) is bool:
        return 5
    if type(value) is int or type(value) is float:
        return 25 if -_LARGE < value < _LARGE else _UNKNOWN  # also if it is no number
    if type(value) is not dict or depth > _SHALLOW or len(value) > _FEW:
        return _UNKNOWN
    length = 2
    for name, item in value.items():
        length += 12 * len(name) + 4 + _max_length(item, depth + 1) if type(name) is str else _UNKNOWN
    return length


def _long_json(value: Json) -> str:
    """The value as JSON; empty if it is certainly short."""
    if _max_length(value) <= BLOB_BYTES:
        return ''
    try:
        return codec.dump(value)
    except (ValueError, TypeError, RecursionError) as error:
        msg = f'the value cannot be recorded, because it is not JSON: {error}; encode it with a `Codec`'
        raise NotDurable(msg) from None
