"""Runs in the machine of a cloud: starts the guest in a process, and passes frames between it and the session.

Frames are lines of JSON text on stdin and stdout; see `sandbox/remote/wire.py`. Their numbers are not used: the stream
of the cloud loses nothing, or ends. This runs as root, and the guest as nobody, who cannot change read-only folders.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from habilis.core.codec import dump
from habilis.sandbox.host.pipe_guest import PipeGuest
from habilis.sandbox.remote.file_sync import SyncedFolder
from habilis.sandbox.remote.hosting import ClientSide
from habilis.sandbox.remote.wire import Frame, Kind, parse_frame

NOBODY = 65534
MAX_TOLD = 100
"""Messages that are told before one waits for the session."""

_GUEST = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.path.insert(0, {archive!r})
from habilis.sandbox.guest.__main__ import main
main({settings!r})
"""
_ENVIRONMENT = {
    'PATH': '/usr/local/bin:/usr/bin:/bin',
    'HOME': '/tmp',
    'TMPDIR': '/tmp',
    'LANG': 'C.UTF-8',
    'MPLBACKEND': 'Agg',
    'MALLOC_ARENA_MAX': '2',
}


def main(archive: str, described: str) -> None:
    """Handle the frames of the session until stdin ends. `archive` has the guest."""
    settings: dict[str, Any] = json.loads(described)
    if os.geteuid() != 0:
        sys.exit('its user is not root; use an image whose user is root')
    folders = [_folder(target, writable) for target, writable in settings['mounts']]
    guest = _start_guest(archive, settings['memory_mb'])
    line = _Line()
    side = ClientSide(folders, settings['output_bytes'], line.send, line.has_room)
    line.send('welcome', dump({'python': sys.version.partition(' ')[0]}))
    files: list[str] = []
    for received in sys.stdin.buffer:
        frame = parse_frame(json.loads(received))
        if frame.kind == 'files':
            files.append(frame.body)
            continue
        changes, files = files, []
        if frame.kind == 'reply':
            side.replies.put((changes, frame.body))
        else:
            threading.Thread(target=_run, args=(line, side, guest, changes, frame.body), daemon=True).start()
    guest.interrupt()


def _run(line: '_Line', side: ClientSide, guest: PipeGuest, files: list[str], message: str) -> None:
    line.send(*side.run(guest, files, message))


class _Line:
    """Sends frames. What others write to stdout and stderr goes nowhere from now on."""

    def __init__(self) -> None:
        self._out: BinaryIO = os.fdopen(os.dup(1), 'wb')
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        self._lock = threading.Lock()
        self._told = 0

    def send(self, kind: Kind, body: str) -> None:
        """Send a frame."""
        with self._lock:
            self._told = self._told + 1 if kind == 'tell' else 0
            self._out.write(json.dumps(Frame(0, 0, kind, body).encode()).encode() + b'\n')
            self._out.flush()

    def has_room(self) -> bool:
        """Whether another message may be told."""
        return self._told < MAX_TOLD


def _folder(target: str, writable: bool) -> SyncedFolder:
    owner = (NOBODY, NOBODY) if writable else None
    try:
        os.makedirs(target, exist_ok=True)
        if owner:
            os.chown(target, *owner)
    except OSError as error:
        sys.exit(f'{target} cannot be made in it: {error.strerror}')
    return SyncedFolder(Path(target), writable=writable, owner=owner)


def _start_guest(archive: str, memory_mb: int) -> PipeGuest:
    out, into = os.pipe()
    os.set_inheritable(into, True)
    code = _GUEST.format(archive=archive, memory=memory_mb << 20, settings={'stdout': into})
    process = subprocess.Popen(
        [sys.executable, '-c', code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[into],
        env=_ENVIRONMENT,
        cwd='/tmp',
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    os.close(into)
    return PipeGuest(process, stdout=out)
