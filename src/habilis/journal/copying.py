"""Copies of runs: forks, and runs as one file that another machine can read."""

import base64
import contextlib
import secrets
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from habilis.core.codec import dump, parse
from habilis.core.errors import CorruptRecord, JournalError, RunBusy
from habilis.journal.contract import Record, RunInfo, Store
from habilis.journal.leases import SECONDS, new_owner
from habilis.journal.lines import checked_blob, digest_of, from_line, info_from_text, info_to_text, to_line
from habilis.journal.refusals import check_name

MAGIC = 'habilis run 1'
MAX_BLOB = 1 << 30
"""A short file must not fill the memory."""

Keep = Callable[[Record], bool]


def new_run_id() -> str:
    """Short enough to type, long enough to be the only one."""
    return f'run-{secrets.token_hex(6)}'


async def copy_run(store: Store, info: RunInfo, *, keep: Keep | None = None, upto: int | None = None) -> RunInfo:
    """A new run with the first records of another, or with those that are to be kept. It is `stopped`."""
    kept: list[Record] = []
    blobs: dict[str, bytes] = {}
    for record in await store.load(info.run):
        if (upto is not None and record.seq > upto) or (keep is not None and not keep(record)):
            continue
        kept.append(replace(record, seq=len(kept) + 1))
        for digest in digests_of(record):
            blobs[digest] = blobs.get(digest) or await store.blob(info.run, digest)
    now = time.time()
    copy = replace(info, run=new_run_id(), status='stopped', parent=info.run, error='', created=now, updated=now)
    await _write(store, copy, kept, blobs)
    return copy


async def _write(store: Store, info: RunInfo, records: Sequence[Record], blobs: dict[str, bytes]) -> None:
    check_name(info.run)
    unfinished = replace(info, status='failed', error='this copy was not finished; delete it, and make it again')
    if not await store.create(unfinished):
        msg = f'there is a run {info.run} here already; delete it first, or give the copy another name'
        raise RunBusy(msg)
    try:
        lease = await store.claim(info.run, owner=new_owner(), seconds=SECONDS)
        await store.append(info.run, records, epoch=lease.epoch, info=info, blobs=blobs)
        await store.release(info.run, epoch=lease.epoch)
    except BaseException:
        with contextlib.suppress(JournalError):
            await store.delete(info.run)
        raise


def digests_of(record: Record) -> list[str]:
    """The blobs of a record."""
    return [*([record.blob] if record.blob else []), *record.attached.values()]


async def export_run(store: Store, run: str) -> str:
    """A run with everything that belongs to it, as lines of text."""
    info, records = await store.info(run), await store.load(run)
    lines = [MAGIC, info_to_text(info)]
    for digest in dict.fromkeys(digest for record in records for digest in digests_of(record)):
        data = zlib.compress(await store.blob(run, digest))
        lines.append(dump({'blob': digest, 'z': base64.b64encode(data).decode('ascii')}))
    lines += [to_line(record) for record in records]
    return '\n'.join([*lines, _end_of(lines, len(records)), ''])


def _end_of(lines: Sequence[str], count: int) -> str:
    """The last line: how many records there are, and a digest of all before."""
    digest = digest_of('\n'.join(lines).encode('utf-8', 'surrogatepass'))
    return f'end {count} {digest}'


async def import_run(store: Store, text: str, *, run: str | None = None, user: str | None = None) -> RunInfo:
    """Have the run of an exported text here, perhaps under another name. Raises `CorruptRecord` and `RunBusy`."""
    lines = text.splitlines()
    if not lines or lines[0] != MAGIC:
        msg = 'this is not an exported run of Habilis, or one of another version'
        raise CorruptRecord(msg)
    if len(lines) < 3 or not lines[-1].startswith('end '):
        msg = 'the exported run is not whole: its end is missing'
        raise CorruptRecord(msg)
    info = info_from_text(lines[1])
    blobs: dict[str, bytes] = {}
    records: list[Record] = []
    for line in lines[2:-1]:
        if line.startswith('{'):
            digest, data = _read_blob(line, info.run)
            blobs[digest] = data
        else:
            records.append(from_line(line, run=info.run, seq=len(records) + 1))
    if lines[-1] != _end_of(lines[:-1], len(records)):
        msg = f'the exported run {info.run} is damaged, or something is missing in the middle'
        raise CorruptRecord(msg)
    for digest in (digest for record in records for digest in digests_of(record)):
        checked_blob(blobs.get(digest), digest, run=info.run)
    status = 'stopped' if info.status == 'running' else info.status  # whoever worked on it does so elsewhere
    info = replace(info, run=run or info.run, user=info.user if user is None else user, status=status)
    await _write(store, info, records, blobs)
    return info


def _read_blob(line: str, run: str) -> tuple[str, bytes]:
    try:
        fields = cast('dict[str, str]', parse(line))
        digest, packed = str(fields['blob']), zlib.decompressobj()
        data = packed.decompress(base64.b64decode(fields['z'], validate=True), MAX_BLOB)
        if not packed.eof:
            raise ValueError(digest)
    except (ValueError, KeyError, TypeError, zlib.error):
        msg = f'a blob of the exported run {run} is damaged, or larger than {MAX_BLOB:,} bytes'
        raise CorruptRecord(msg) from None
    return digest, checked_blob(data, digest, run=run)
