"""Copies of runs: forks, and export to and import from a text file."""

import base64
import secrets
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from habilis.core.codec import Json, dump, parse
from habilis.core.errors import CorruptRecord
from habilis.core.narrowing import expect, json_object
from habilis.journal.contract import Kind, Record, RunInfo, Store
from habilis.journal.creation import as_blob, create_with
from habilis.journal.encoding import check_blob, decode_info, decode_record, digest_of, encode_info, encode_record

MAGIC = 'habilis run 1'
MAX_BLOB = 1 << 30
"""Maximum size of a decompressed blob, so that a small file cannot exhaust memory."""

_ADVICE = 'delete it first, or give the copy another id'

Keep = Callable[[Record], bool]
Note = tuple[Kind, Json]
"""Kind and value of a record about the whole run, to be added at its end."""


GENERATED = 'run-'
"""Start of the ids that are generated."""


def new_run_id() -> str:
    """A random id for a new run."""
    return f'{GENERATED}{secrets.token_hex(6)}'


async def copy_run(
    store: Store,
    info: RunInfo,
    *,
    keep: Keep | None = None,
    upto: int | None = None,
    note: Note | None = None,
    instead: Record | None = None,
) -> RunInfo:
    """Copy a run to a new one, which is `stopped`: records up to number `upto`, for which `keep` returns True.

    `instead` is copied instead of the record with its number.
    """
    kept: list[Record] = []
    blobs: dict[str, bytes] = {}
    if instead is not None:
        value, blob, blobs = as_blob(instead.value)
        instead = replace(instead, value=value, blob=blob)
    for found in await store.load(info.run):
        record = instead if instead is not None and found.seq == instead.seq else found
        if (upto is not None and record.seq > upto) or (keep is not None and not keep(record)):
            continue
        kept.append(replace(record, seq=len(kept) + 1))
        for digest in digests_of(record):
            blobs[digest] = blobs.get(digest) or await store.blob(info.run, digest)
    now = time.time()
    copy = replace(info, run=new_run_id(), status='stopped', parent=info.run, error='', created=now, updated=now)
    copy = replace(copy, ended='', cost=0.0, seconds=0.0)
    await create_with(store, copy, _with_note(kept, note), blobs, advice=_ADVICE)
    return copy


def _with_note(records: Sequence[Record], note: Note | None) -> Sequence[Record]:
    if note is None:
        return records
    kind, value = note
    return [*records, Record(seq=len(records) + 1, path='', kind=kind, value=value, at=round(time.time(), 6))]


def digests_of(record: Record) -> list[str]:
    """The digests of all blobs of a record."""
    return [*([record.blob] if record.blob else []), *record.attached.values()]


async def export_run(store: Store, run: str) -> str:
    """A run with its records and blobs as text."""
    info, records = await store.info(run), await store.load(run)
    lines = [MAGIC, encode_info(info)]
    for digest in dict.fromkeys(digest for record in records for digest in digests_of(record)):
        data = zlib.compress(await store.blob(run, digest))
        lines.append(dump({'blob': digest, 'z': base64.b64encode(data).decode('ascii')}))
    lines += [encode_record(record) for record in records]
    return '\n'.join([*lines, _last_line(lines, len(records)), ''])


def _last_line(lines: Sequence[str], count: int) -> str:
    """The last line: the number of records, and a digest of all lines before it."""
    digest = digest_of('\n'.join(lines).encode('utf-8', 'surrogatepass'))
    return f'end {count} {digest}'


async def import_run(
    store: Store, text: str, *, run: str | None = None, user: str | None = None, note: Note | None = None
) -> RunInfo:
    """Import an exported run, optionally with another id. Raises `CorruptRecord`, and `RunBusy` if the run exists."""
    lines = text.splitlines()
    if not lines or lines[0] != MAGIC:
        msg = 'this is not an exported run of Habilis, or it has an unknown version'
        raise CorruptRecord(msg)
    if len(lines) < 3 or not lines[-1].startswith('end '):
        msg = 'the exported run is truncated: its last line is missing'
        raise CorruptRecord(msg)
    info = decode_info(lines[1])
    blobs: dict[str, bytes] = {}
    records: list[Record] = []
    for line in lines[2:-1]:
        if line.startswith('{'):
            digest, data = _read_blob(line, info.run)
            blobs[digest] = data
        else:
            records.append(decode_record(line, run=info.run, seq=len(records) + 1))
    if lines[-1] != _last_line(lines[:-1], len(records)):
        msg = f'the exported run {info.run} is damaged: its checksum does not match'
        raise CorruptRecord(msg)
    for digest in (digest for record in records for digest in digests_of(record)):
        check_blob(blobs.get(digest), digest, run=info.run)
    status = (
        'stopped' if info.status == 'running' else info.status
    )  # it may be running elsewhere, but not in this store
    info = replace(info, run=run or info.run, user=info.user if user is None else user, status=status)
    await create_with(store, info, _with_note(records, note), blobs, advice=_ADVICE)
    return info


def _read_blob(line: str, run: str) -> tuple[str, bytes]:
    try:
        fields = json_object(parse(line))
        digest, packed = str(fields['blob']), zlib.decompressobj()
        data = packed.decompress(base64.b64decode(expect(fields['z'], str), validate=True), MAX_BLOB)
        if not packed.eof:
            raise ValueError(digest)
    except (ValueError, KeyError, TypeError, zlib.error):
        msg = f'a blob of the exported run {run} is damaged, or larger than {MAX_BLOB:,} bytes'
        raise CorruptRecord(msg) from None
    return digest, check_blob(data, digest, run=run)
