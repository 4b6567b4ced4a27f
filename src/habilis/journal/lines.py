"""A record as one line of text: its checksum, then JSON. Every store keeps records in this form."""

import hashlib
import logging
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields as fields_of
from typing import cast, get_args

from pydantic_core import from_json

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import CorruptRecord
from habilis.journal.contract import BLOB_BYTES, SCHEMA, Kind, Record, RunInfo, Status

logger = logging.getLogger('habilis.journal')

_KINDS = frozenset(get_args(Kind))
_STATES = frozenset(get_args(Status))
_NONSENSE = (CodecError, KeyError, TypeError, ValueError, AttributeError, OverflowError)
_set_seq, _set_path, _set_kind, _set_key, _set_value, _set_blob, _set_attached, _set_at = (
    cast('Callable[[Record, object], None]', getattr(Record, field.name).__set__) for field in fields_of(Record)
)
_TEXTS = ('run', 'kind', 'name', 'title', 'user', 'session', 'parent', 'error')


def to_line(record: Record) -> str:
    """Without a line break, in ASCII."""
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
    return f'{_checksum(text)} {text}'


def from_line(line: str, *, run: str, seq: int) -> Record:
    """The record of a line that should be number `seq` of this run. Raises `CorruptRecord`."""
    checksum, _, text = line.partition(' ')
    if checksum != _checksum(text):
        raise _corrupt(run, seq, 'its checksum does not match')
    try:
        return _read(cast('dict[str, Json]', _parse(text)), run, seq)
    except _NONSENSE as error:
        raise _corrupt(run, seq, f'it is no record ({error})') from None


def from_lines(lines: Iterable[str], *, run: str, after: int = 0) -> list[Record]:
    """The records of the lines that follow the record `after`. Raises `CorruptRecord`, with those before it."""
    records: list[Record] = []
    try:
        for seq, line in enumerate(lines, after + 1):
            records.append(from_line(line, run=run, seq=seq))
    except CorruptRecord as error:
        error.before = records
        raise
    return records


def _parse(text: str) -> Json:
    if len(text) < 2 * BLOB_BYTES:
        try:
            return from_json(text, allow_inf_nan=False)
        except (ValueError, TypeError):
            pass  # half a surrogate pair, perhaps, or a very large number, which Python's own reader takes
    if 'NaN' in text or 'Infinity' in text:
        dump(parse(text))  # which is no JSON, and could not be written again
    return parse(text)


def _read(fields: dict[str, Json], run: str, seq: int) -> Record:
    version = fields['v']
    if not isinstance(version, int) or version > SCHEMA:
        raise _corrupt(run, seq, f'it was written by a newer Habilis (format {version}, this one reads {SCHEMA})')
    kind, path, key, blob = fields['k'], fields['p'], fields.get('f', ''), fields.get('b', '')
    if fields['n'] != seq:
        raise _corrupt(run, seq, f'number {fields["n"]} stands in its place')
    if kind not in _KINDS:
        raise _corrupt(run, seq, f'it is of an unknown kind {kind!r}')
    if not (isinstance(path, str) and isinstance(key, str) and isinstance(blob, str)):
        raise TypeError(path, key, blob)
    attached = _attached(fields['a']) if 'a' in fields else {}
    return new_record(
        seq=seq,
        path=path,
        kind=cast('Kind', kind),
        key=key,
        value=fields.get('d'),
        blob=blob,
        attached=attached,
        at=_number(fields['t']),
    )


def new_record(
    *, seq: int, path: str, kind: Kind, key: str, value: Json, blob: str, attached: Mapping[str, str], at: float
) -> Record:
    """The same as `Record(…)` in half the time, which a frozen dataclass spends on getting around itself."""
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
    return {name: _text(digest) for name, digest in cast('dict[str, Json]', fields or {}).items()}


def info_to_text(info: RunInfo) -> str:
    """The info of a run as JSON."""
    fields: dict[str, Json] = {name: getattr(info, name) for name in _TEXTS if getattr(info, name)}
    fields |= {'v': SCHEMA, 'status': info.status, 'created': info.created, 'updated': info.updated}
    return dump(fields)


def info_from_text(text: str) -> RunInfo:
    """The info of a JSON text. Raises `CorruptRecord`."""
    try:
        fields = cast('dict[str, Json]', parse(text))
        version = fields['v']
        if not isinstance(version, int) or version > SCHEMA:
            msg = f'a run was written by a newer Habilis (format {version}, this one reads {SCHEMA}): {text[:100]}'
            raise CorruptRecord(msg)
        texts = {name: _text(fields[name]) for name in _TEXTS if name in fields}
        if fields['status'] not in _STATES or texts.get('kind') not in {'agent', 'flow'} or not texts.get('run'):
            raise ValueError(texts.get('kind'))
        return RunInfo(
            **texts,  # pyright: ignore[reportArgumentType]
            status=cast('Status', fields['status']),
            created=_number(fields['created']),
            updated=_number(fields['updated']),
        )
    except _NONSENSE:
        msg = f'the description of a run is damaged: {text[:100]}'
        raise CorruptRecord(msg) from None


def infos_from(found: Iterable[tuple[object, str]]) -> Iterator[RunInfo]:
    """The infos of runs and their texts. The others can be seen also if one of them is damaged."""
    for run, text in found:
        try:
            yield info_from_text(text)
        except CorruptRecord as error:
            leave_out(run, error)


def leave_out(run: object, error: CorruptRecord) -> None:
    """Tell of a run that is missing in a list."""
    logger.warning('%s is left out of the list: %s', run, error)


def newest_first(
    infos: Iterable[RunInfo], *, user: str | None = None, session: str | None = None, status: Status | None = None
) -> list[RunInfo]:
    """Those that were asked for."""
    wanted = [
        info
        for info in infos
        if user in {None, info.user} and session in {None, info.session} and status in {None, info.status}
    ]
    return sorted(wanted, key=lambda info: (info.created, info.run), reverse=True)


def digest_of(data: bytes) -> str:
    """The name of a blob."""
    return hashlib.sha256(data).hexdigest()


def checked_blob(data: bytes | None, digest: str, *, run: str) -> bytes:
    """The blob, if it is what its name says. Raises `CorruptRecord`."""
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
    number = float(value) if isinstance(value, (int, float)) else math.nan
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _checksum(text: str) -> str:
    return f'{zlib.crc32(text.encode("utf-8", "surrogatepass")):08x}'


def _corrupt(run: str, seq: int, why: str) -> CorruptRecord:
    return CorruptRecord(
        f'record {seq} of {run} is damaged: {why}. Fork the run before it: habilis runs fork {run} --before {seq}'
    )
