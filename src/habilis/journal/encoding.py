"""Encoding of records, run infos and blobs. A record is one line of text: a checksum, then JSON."""

import hashlib
import logging
import math
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields as fields_of
from typing import get_args

from pydantic_core import from_json

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import CorruptRecord
from habilis.core.narrowing import json_object
from habilis.journal.contract import BLOB_BYTES, SCHEMA, Kind, Record, RunCount, RunFigures, RunInfo, Status

logger = logging.getLogger('habilis.journal')

_KINDS: dict[object, Kind] = {kind: kind for kind in get_args(Kind)}
_STATES: dict[object, Status] = {status: status for status in get_args(Status)}
_DECODE_ERRORS = (CodecError, KeyError, TypeError, ValueError, AttributeError, OverflowError)


def _setter(name: str) -> Callable[[Record, object], None]:
    return getattr(Record, name).__set__


_set_seq, _set_path, _set_kind, _set_key, _set_value, _set_blob, _set_attached, _set_at = (
    _setter(field.name) for field in fields_of(Record)
)
_CHECKSUM_LENGTH = 9
"""Eight digits and a space."""

_TEXT_FIELDS = ('run', 'kind', 'name', 'title', 'user', 'session', 'parent', 'error', 'ended')
_FIGURES = ('cost', 'seconds')


def must_sync(records: Iterable[Record]) -> bool:
    """Whether an append must be on the disk when it returns, whatever the durability of the store."""
    return 'started' in [record.kind for record in records]


def encode_record(record: Record) -> str:
    """A record as one line of ASCII text, without a line break."""
    fields: dict[str, Json] = {
        'v': SCHEMA,
        'n': record.seq,
        'p': record.path,
        'k': record.kind,
        't': round(record.at, 6),
    }
    if record.key:
        fields['f'] = record.key
    if record.blob:
        fields['b'] = record.blob
    elif record.value is not None:
        fields['d'] = record.value
    if record.attached:
        fields['a'] = dict(record.attached)
    text = dump(fields)
    return f'{zlib.crc32(text.encode("ascii")):08x} {text}'


def decode_record(line: str | bytes, *, run: str, seq: int) -> Record:
    """The record in a line, which must have the number `seq`. Raises `CorruptRecord`."""
    data = line if isinstance(line, bytes) else line.encode('utf-8', 'surrogatepass')
    text = data[_CHECKSUM_LENGTH:]
    if data[:_CHECKSUM_LENGTH] != b'%08x ' % zlib.crc32(text):
        raise corrupt_record(run, seq, 'its checksum does not match')
    try:
        return _decode(json_object(_parse(text)), run, seq)
    except _DECODE_ERRORS as error:
        raise corrupt_record(run, seq, f'it is not a record ({error})') from None


def decode_records(lines: Iterable[str | bytes], *, run: str, after: int = 0) -> list[Record]:
    """The records in the lines after record `after`. Raises `CorruptRecord`, with the records before it."""
    records: list[Record] = []
    try:
        for seq, line in enumerate(lines, after + 1):
            records.append(decode_record(line, run=run, seq=seq))
    except CorruptRecord as error:
        error.before = records
        raise
    return records


def _parse(data: bytes) -> Json:
    if len(data) < 2 * BLOB_BYTES:
        try:
            return from_json(data, allow_inf_nan=False)
        except (ValueError, TypeError):
            pass  # a lone surrogate or a very large number, which the standard library accepts
    text = data.decode('utf-8', 'surrogatepass')
    if 'NaN' in text or 'Infinity' in text:
        dump(parse(text))  # raises: these are not valid JSON
    return parse(text)


def _decode(fields: dict[str, Json], run: str, seq: int) -> Record:
    version, path, key, blob = fields['v'], fields['p'], fields.get('f', ''), fields.get('b', '')
    if version != SCHEMA and (not isinstance(version, int) or version > SCHEMA):
        raise corrupt_record(run, seq, f'it was written by a newer Habilis (format {version}, this one reads {SCHEMA})')
    if fields['n'] != seq:
        raise corrupt_record(run, seq, f'its number is {fields["n"]}')
    kind = _KINDS.get(fields['k'])
    if kind is None:
        raise corrupt_record(run, seq, f'its kind {fields["k"]!r} is unknown')
    if not (isinstance(path, str) and isinstance(key, str) and isinstance(blob, str)):
        raise TypeError(path, key, blob)
    attached = _attached(fields['a']) if 'a' in fields else {}
    return new_record(path, kind, key, fields.get('d'), blob, attached, seq=seq, at=_number(fields['t']))


def new_record(
    path: str, kind: Kind, key: str, value: Json, blob: str, attached: Mapping[str, str], *, seq: int, at: float
) -> Record:
    """`Record(…)` in half the time: the constructor of a frozen dataclass is slow."""
    record = object.__new__(Record)
    _set_seq(record, seq)
    _set_path(record, path)
    _set_kind(record, kind)
    _set_key(record, key)
    _set_value(record, value)
    _set_blob(record, blob)
    _set_attached(record, attached)
    _set_at(record, at)
    return record


def _attached(fields: Json) -> dict[str, str]:
    return {name: _text(digest) for name, digest in json_object(fields or {}).items()}


def encode_info(info: RunInfo) -> str:
    """The info of a run as JSON."""
    fields: dict[str, Json] = {name: getattr(info, name) for name in (*_TEXT_FIELDS, *_FIGURES) if getattr(info, name)}
    fields |= {'v': SCHEMA, 'status': info.status, 'created': info.created, 'updated': info.updated}
    return dump(fields)


def decode_info(text: str) -> RunInfo:
    """The info of a run from its JSON. Raises `CorruptRecord`."""
    try:
        fields = json_object(parse(text))
        version = fields['v']
        if not isinstance(version, int) or version > SCHEMA:
            msg = f'a run was written by a newer Habilis (format {version}, this one reads {SCHEMA}): {text[:100]}'
            raise CorruptRecord(msg)
        texts = {name: _text(fields[name]) for name in _TEXT_FIELDS if name in fields}
        if fields['status'] not in _STATES or texts.get('kind') not in {'agent', 'flow'} or not texts.get('run'):
            raise ValueError(texts.get('kind'))
        return RunInfo(
            **texts,  # pyright: ignore[reportArgumentType]
            **{name: _number(fields[name]) for name in _FIGURES if name in fields},
            status=_STATES[fields['status']],
            created=_number(fields['created']),
            updated=_number(fields['updated']),
        )
    except _DECODE_ERRORS:
        msg = f'the info of a run is damaged: {text[:100]}'
        raise CorruptRecord(msg) from None


def decode_infos(found: Iterable[tuple[object, str]]) -> Iterator[RunInfo]:
    """The infos of runs from pairs of id and JSON. Damaged ones are skipped."""
    for run, text in found:
        try:
            yield decode_info(text)
        except CorruptRecord as error:
            log_skipped(run, error)


def log_skipped(run: object, error: CorruptRecord) -> None:
    """Log that a damaged run is missing in a list."""
    logger.warning('%s is not listed: %s', run, error)


def select_runs(
    infos: Iterable[RunInfo], *, user: str | None = None, session: str | None = None, status: Status | None = None
) -> list[RunInfo]:
    """The runs of a user, session or status, newest first."""
    selected = [
        info
        for info in infos
        if user in {None, info.user} and session in {None, info.session} and status in {None, info.status}
    ]
    return sorted(selected, key=lambda info: (info.created, info.run), reverse=True)


def run_figures(counts: Iterable[tuple[Status, str, int, int, float, float]], slowest: Iterable[str]) -> RunFigures:
    """The figures of a store that counts in SQL: rows in the order of the fields of `RunCount`, and infos as JSON."""
    return RunFigures(
        counts=tuple(
            RunCount(status=status, ended=ended, interval=interval, runs=runs, cost=cost, seconds=seconds)
            for status, ended, interval, runs, cost, seconds in counts
        ),
        slowest=tuple(decode_infos((n, text) for n, text in enumerate(slowest))),
    )


def digest_of(data: bytes) -> str:
    """The digest of a blob."""
    return hashlib.sha256(data).hexdigest()


def check_blob(data: bytes | None, digest: str, *, run: str) -> bytes:
    """The blob. Raises `CorruptRecord` if it is missing, or does not match its digest."""
    if data is None:
        msg = f'{run}: the blob {digest[:12]}… is missing'
        raise CorruptRecord(msg)
    if digest_of(data) != digest:
        msg = f'{run}: the blob {digest[:12]}… is damaged (its checksum does not match)'
        raise CorruptRecord(msg)
    return data


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: Json) -> float:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def corrupt_record(run: str, seq: int, why: str) -> CorruptRecord:
    """The error for a damaged record, which says how to recover."""
    options = f'--before {seq} --no-resume'
    name = shlex.quote(run)
    return CorruptRecord(
        f'record {seq} of {run} is damaged: {why}. To recover, fork the run before it: '
        f'habilis runs fork {f"{options} -- {name}" if run.startswith("-") else f"{name} {options}"}'
    )
