"""The bytes of a snapshot: a readable header, then what the guest saved. The host never looks inside that."""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import cast

from habilis.core.errors import SnapshotError

MAGIC = b'habilis snapshot 1\n'


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The variables of a sandbox at one moment."""

    state: str
    """What the guest's kernel saved, base64."""

    python: str
    """The interpreter that saved it; only the same one can read it."""

    cells: int = 0
    lost: tuple[str, ...] = ()


class Snapshot(bytes):
    """A snapshot to keep. `lost` names the variables that could not be saved (open files, generators, …)."""

    lost: tuple[str, ...] = ()


def to_bytes(checkpoint: Checkpoint) -> Snapshot:
    """Header, checksum and variables in one piece."""
    try:
        state = base64.b64decode(checkpoint.state)
    except ValueError as error:
        msg = 'the sandbox did not save its variables but something else; its own code has broken it'
        raise SnapshotError(msg) from error
    header = {
        'python': checkpoint.python,
        'cells': checkpoint.cells,
        'lost': checkpoint.lost,
        'sha256': hashlib.sha256(state).hexdigest(),
    }
    snapshot = Snapshot(MAGIC + json.dumps(header).encode() + b'\n' + state)
    snapshot.lost = checkpoint.lost
    return snapshot


def from_bytes(data: bytes) -> Checkpoint:
    """The checkpoint of a snapshot, after checking that it is whole."""
    if not data.startswith(b'habilis snapshot '):
        msg = 'this is not a Habilis snapshot'
        raise SnapshotError(msg)
    if not data.startswith(MAGIC):
        msg = 'this snapshot was made by another version of Habilis; run that version to read it'
        raise SnapshotError(msg)
    text, _, state = data[len(MAGIC) :].partition(b'\n')
    try:
        header = cast('dict[str, object]', json.loads(text))
        whole = header['sha256'] == hashlib.sha256(state).hexdigest()
        checkpoint = Checkpoint(
            state=base64.b64encode(state).decode('ascii'),
            python=str(header['python']),
            cells=int(cast('int', header['cells'])),
            lost=tuple(cast('list[str]', header['lost'])),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        whole = False
    if not whole:
        msg = 'this snapshot is damaged (its checksum does not match)'
        raise SnapshotError(msg)
    return checkpoint  # pyright: ignore[reportPossiblyUnboundVariable]
