"""Export and import: one JSON object per line, in a fixed order. An import adds all of a file, or nothing."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from typing import Any, TypeVar, cast

from habilis.core import codec
from habilis.core.codec import CodecError, Json
from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.errors import DocumentError
from habilis.memory.contract import Entry, Fact, Task, Turn
from habilis.memory.database import Cursor
from habilis.memory.entries import COLUMNS, entry_terms, find_owner, insert, lock_owner, read_entry
from habilis.memory.tasks import fields_of, read_tasks, restore_task

T = TypeVar('T')
VERSION = 1
MAX_LINE = 32 << 20
_HEAD: dict[str, Json] = {'habilis': 'memory', 'version': VERSION}
_CODECS: dict[str, DataclassCodec[Any]] = {
    'turn': DataclassCodec(Turn),
    'fact': DataclassCodec(Fact),
    'task': DataclassCodec(Task),
}


def export_lines(cursor: Cursor, user: str) -> list[str]:
    """Everything of a user, as lines of JSON in ASCII."""
    owner = find_owner(cursor, user).key
    rows = cursor.all(f'SELECT {COLUMNS} FROM {{s}}entries WHERE owner = ? ORDER BY number', owner)
    lines: list[dict[str, Json]] = [_HEAD]
    for row in rows:
        entry = read_entry(row)
        lines.append({'turn' if isinstance(entry, Turn) else 'fact': cast('Json', asdict(entry))})
    tasks = read_tasks(cursor, user).values()
    lines.extend({'task': cast('Json', {'number': task.number, **fields_of(task)})} for task in tasks)
    return [codec.dump(line) for line in lines]


def import_lines(cursor: Cursor, user: str, lines: Iterable[str]) -> int:
    """Add what is not there yet. Returns how many entries and tasks were new. Raises `DocumentError`."""
    read = list(_read(lines))
    owner = lock_owner(cursor, user)
    known = _known(cursor, owner)
    taken = {(one.session, one.position) for one in known.values() if isinstance(one, Turn)}
    added = 0
    for number, value in read:
        try:
            if isinstance(value, Task):
                added += restore_task(cursor, user, value)
                continue
            if value == known.get(value.id):
                continue
            _check_entry(value, known, taken)
        except ValueError as error:
            raise _invalid(number, error) from None
        known[value.id] = value
        insert(cursor, owner, value, entry_terms(value))
        added += 1
    _check_links(read, known, read_tasks(cursor, user).keys())
    return added


def _known(cursor: Cursor, owner: str) -> dict[str, Entry]:
    rows = cursor.all(f'SELECT {COLUMNS} FROM {{s}}entries WHERE owner = ?', owner)
    return {entry.id: entry for entry in map(read_entry, rows)}


def _read(lines: Iterable[str]) -> Iterator[tuple[int, Entry | Task]]:
    """The values of a file with the numbers of their lines."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, head = next(numbered, (1, ''))
    first = _object(number, head)
    version = first.get('version')
    if first.get('habilis') != 'memory' or not isinstance(version, int):
        raise _invalid(number, 'this is no export of a memory; make one with: habilis memory export FILE')
    if version > VERSION:
        raise _invalid(number, f'the export has version {version}, and this Habilis reads {VERSION}: update Habilis')
    for number, line in numbered:
        fields = _object(number, line)
        kind = next(iter(fields), '')
        if len(fields) != 1 or kind not in _CODECS:
            raise _invalid(number, f'expected one of {", ".join(_CODECS)}')
        try:
            yield number, _CODECS[kind].from_dict(fields[kind])
        except ValueError as error:
            raise _invalid(number, f'{kind}: {error}') from None


def _object(number: int, line: str) -> dict[str, Json]:
    try:
        if len(line) > MAX_LINE:
            raise _invalid(number, f'it has more than {MAX_LINE:,} characters')
        value = codec.parse(line.strip())
    except CodecError as error:
        raise _invalid(number, error) from None
    if not isinstance(value, dict):
        raise _invalid(number, 'expected a JSON object')
    return value


def _check_entry(entry: Entry, known: dict[str, Entry], taken: set[tuple[str, int]]) -> None:
    if not entry.id.isascii() or not entry.id.isalnum() or not 4 <= len(entry.id) <= 40:
        msg = f'{entry.id[:40]!r} is not a valid id'
        raise ValueError(msg)
    if entry.id in known:
        msg = f'there is another entry with the id {entry.id} already'
        raise ValueError(msg)
    if not math.isfinite(entry.time):
        msg = 'the time is not a number'
        raise ValueError(msg)
    if isinstance(entry, Turn):
        check_name(entry.session, 'session')
        check_name(entry.role, 'role')
        if not 1 <= entry.position < 2**53 or (entry.session, entry.position) in taken:
            msg = f'position {entry.position} of the session {entry.session!r} is taken or not valid'
            raise ValueError(msg)
        taken.add((entry.session, entry.position))


def _check_links(read: Iterable[tuple[int, Entry | Task]], known: dict[str, Entry], tasks: Collection[int]) -> None:
    """Raise `DocumentError` if something refers to what does not exist, or a fact replaces itself."""
    for number, value in read:
        if isinstance(value, Task) and (missing := next((one for one in value.after if one not in tasks), None)):
            raise _invalid(number, f'there is no task {missing}')
        if isinstance(value, Fact):
            if value.source is not None and not isinstance(known.get(value.source), Turn):
                raise _invalid(number, f'there is no turn {value.source[:40]!r}')
            newer, steps = value, 0
            while newer.superseded_by is not None:
                following = known.get(newer.superseded_by)
                steps += 1
                if not isinstance(following, Fact) or steps > len(known):
                    raise _invalid(number, f'{newer.superseded_by[:40]!r} is not a newer fact')
                newer = following


def check_name(name: str, what: str) -> None:
    """Raise `ValueError` for a name that a person could not read or type."""
    if not name.strip() or not name.isprintable() or len(name) > 200:
        msg = f'{name[:40]!r} is not a valid {what}: use 1 to 200 characters that can be printed'
        raise ValueError(msg)


def _invalid(number: int, why: object) -> DocumentError:
    return DocumentError(f'nothing was imported: line {number}: {why}')
