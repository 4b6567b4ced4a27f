"""The bytes of a snapshot: a readable header, then what the guest saved. The host never looks inside that."""

import functools
import json
import zlib
from dataclasses import dataclass
from typing import cast

from habilis.core.errors import SnapshotError
from habilis.core.narrowing import fields_in, is_list, items_in

MAGIC = b'habilis snapshot 1\n'
MAX_CELLS = 1 << 53
_MALFORMED = 'this snapshot is malformed (it was not made by Habilis)'


@dataclass(frozen=True, kw_only=True)
class SavedVariables:
    """The variables of a sandbox at one moment."""

    state: str
    """What the guest's kernel saved: bytes, each as one letter."""

    python: str
    """The interpreter that saved it; only the same one can read it."""

    cells: int = 0
    lost: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """The packages that the variables may need, as requirements with versions; only in a snapshot."""


class Snapshot(bytes):
    """A snapshot to keep. `lost` names the variables that could not be saved (open files, generators, …)."""

    lost: tuple[str, ...] = ()


def to_bytes(checkpoint: SavedVariables) -> Snapshot:
    """Checksum, header and variables in one piece."""
    try:
        state = checkpoint.state.encode('latin-1')
    except ValueError as error:
        msg = 'the sandbox did not save its variables but something else; its own code has broken it'
        raise SnapshotError(msg) from error
    header = {'python': checkpoint.python, 'cells': checkpoint.cells, 'lost': checkpoint.lost}
    if checkpoint.packages:
        header['packages'] = checkpoint.packages
    text = json.dumps(header).encode() + b'\n'
    snapshot = Snapshot(b''.join((MAGIC, _checksum(text, state), b'\n', text, state)))
    snapshot.lost = checkpoint.lost
    return snapshot


def from_bytes(data: bytes) -> SavedVariables:
    """The checkpoint of a snapshot, after checking that it is whole."""
    if not isinstance(cast('object', data), bytes | bytearray | memoryview):
        msg = f'a snapshot is bytes, as Sandbox.snapshot() returns them, not {type(data).__name__}'
        raise TypeError(msg)
    data = bytes(data)
    if not data.startswith(b'habilis snapshot '):
        msg = 'this is not a Habilis snapshot'
        raise SnapshotError(msg)
    if not data.startswith(MAGIC):
        msg = 'this snapshot was made by another version of Habilis; run that version to read it'
        raise SnapshotError(msg)
    checksum, _, content = data[len(MAGIC) :].partition(b'\n')
    if checksum != _checksum(content):
        msg = 'this snapshot is damaged (its checksum does not match)'
        raise SnapshotError(msg)
    text, _, state = content.partition(b'\n')
    try:
        match json.loads(text):
            case {'python': str(python), 'cells': int(cells), 'lost': [*lost], **rest} if 0 <= cells < MAX_CELLS:
                names = tuple(name for name in items_in(lost) if isinstance(name, str))
                packages = _parse_packages(fields_in(rest).get('packages'))
                return SavedVariables(
                    state=state.decode('latin-1'), python=python, cells=cells, lost=names, packages=packages
                )
            case _:
                raise SnapshotError(_MALFORMED)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(_MALFORMED) from error


def not_restored(failure: Exception) -> SnapshotError:
    """The error for a snapshot whose variables break the interpreter that loads them."""
    return SnapshotError(f'the snapshot cannot be restored: {failure}')


def _parse_packages(data: object) -> tuple[str, ...]:
    """Only requirements of a registry: a forged snapshot must not name folders or addresses for the host to read."""
    if data is None:
        return ()
    from habilis.sandbox.packages.installation import is_pin

    packages = tuple(one for one in items_in(data) if isinstance(one, str) and is_pin(one))
    if not is_list(data) or len(packages) < len(data):
        raise ValueError(data)
    return packages


def _checksum(*parts: bytes) -> bytes:
    """Against damage, as of the records of a journal: whoever may change a snapshot can change its checksum, too."""
    return b'%08x' % functools.reduce(lambda value, part: zlib.crc32(part, value), parts, 0)
