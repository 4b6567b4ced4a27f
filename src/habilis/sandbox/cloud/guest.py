"""A guest in a machine of a cloud, reached through stdin and stdout of one command: see `inside.py`."""

import base64
import contextlib
import io
import json
import queue
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import SandboxError
from habilis.sandbox.contract import GuestDied, GuestSpec
from habilis.sandbox.host.guest_folder import guest_folder
from habilis.sandbox.host.warm_guests import SilentHost
from habilis.sandbox.remote.framed_guest import FramedGuest
from habilis.sandbox.remote.wire import MAX_FRAME, Frame, Kind, parse_frame

COMMAND = "exec python3 -u -c 'import sys; exec(sys.stdin.buffer.readline())' 2>&1"
"""Runs the first line of its stdin, which brings the guest."""

START_SECONDS = 120.0
LAST_WORDS_SECONDS = 5.0
WAITING = 16
"""Frames that wait for the session; the rest waits in the cloud."""

_MORE_FILES = (
    *('core/errors.py', 'core/integers.py', 'core/limits.py', 'core/narrowing.py', 'core/previews.py'),
    *('sandbox/contract.py', 'sandbox/host/line_guest.py', 'sandbox/network.py', 'sandbox/host/pipe_guest.py'),
    'sandbox/cloud/inside.py',
    *('sandbox/remote/file_sync.py', 'sandbox/remote/hosting.py', 'sandbox/remote/wire.py'),
)
_FIRST_LINE = """
import base64, os, sys, tempfile
if sys.version_info < (3, 11):
    sys.exit('its Python is %d.%d; use an image with Python 3.11 or later' % sys.version_info[:2])
folder = tempfile.mkdtemp()
os.chmod(folder, 0o755)
archive = os.path.join(folder, 'guest.zip')
with open(archive, 'wb') as file:
    file.write(base64.b64decode({archive!r}))
os.chmod(archive, 0o644)
sys.path.insert(0, archive)
from habilis.sandbox.cloud.inside import main
main(archive, {settings!r})
"""

_REMOVALS = ThreadPoolExecutor(4, 'habilis-cloud-removal')
"""Ends machines in the background; Python waits for it at exit."""


class CloudMachine(Protocol):
    """A machine with one running command, `COMMAND`."""

    def send(self, text: str) -> None:
        """Write to the command's stdin."""
        ...

    def output(self) -> Iterator[str]:
        """What the command writes to its stdout, as it comes."""
        ...

    def renew(self) -> None:
        """Extend the life of the machine."""
        ...

    def end(self) -> None:
        """Remove the machine."""
        ...


class CloudGuest(FramedGuest):
    """The client's side of a guest in a cloud."""

    def __init__(self, machine: CloudMachine, spec: GuestSpec, cloud: str) -> None:
        super().__init__(spec)
        self._machine = machine
        self._spec = spec
        self._cloud = cloud
        self._stopped = threading.Event()
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._lost = ''

    def start(self) -> None:
        """Bring the guest into the machine. Raises `SandboxError`."""
        threading.Thread(target=self._read, name='habilis-cloud-reader', daemon=True).start()
        limit = self._limit(START_SECONDS)
        try:
            try:
                self._machine.send(_first_line(self._spec))
            except Exception as error:  # the command has ended; what it said is better than this
                self._lost = str(error)
                limit.cancel()
                limit = self._limit(LAST_WORDS_SECONDS)
            self._wait_for_welcome()
            self.enter('{"op":"warm"}', SilentHost())  # no cell waits for the imports of the kernel
        except GuestDied as death:
            raise self._unusable(str(death)) from None
        except BaseException:
            self.interrupt()
            raise
        finally:
            limit.cancel()

    def _limit(self, seconds: float) -> threading.Timer:
        limit = threading.Timer(seconds, self.interrupt)
        limit.daemon = True
        limit.start()
        return limit

    def _wait_for_welcome(self) -> None:
        said = ''
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(CodecError):
                if _parse_line(line).kind == 'welcome':
                    return
            said = line.strip() or said  # of the shell, or of Python
        raise self._unusable(said or self._lost or 'it did not start')

    def _unusable(self, reason: str) -> SandboxError:
        self.interrupt()
        return SandboxError(f'the machine at {self._cloud} cannot run the sandbox: {reason[:300]}')

    def _send(self, kind: Kind, body: str) -> None:
        try:
            self._machine.send(json.dumps(Frame(0, 0, kind, body).encode()) + '\n')
        except Exception as error:  # SDKs have no common class
            raise self._death(str(error)) from None

    def _receive(self) -> Frame:
        line = None if self._stopped.is_set() else self._lines.get()
        if line is None:
            raise self._death(self._lost)
        return _parse_line(line)

    def _death(self, reason: str) -> GuestDied:
        if self._stopped.is_set():
            return GuestDied('cancelled', 'interrupted')
        self.interrupt()
        reason = reason.strip().partition('\n')[0][:300] or 'its command ended'
        return GuestDied('broken', f'the machine at {self._cloud} was lost: {reason}')

    def _read(self) -> None:
        """Split the output into lines, until the command ends or nobody wants them any more."""
        parts: list[str] = []
        size = 0
        try:
            for text in self._machine.output():
                *ends, rest = text.split('\n')
                for end in ends:
                    self._put(''.join((*parts, end)))
                    parts, size = [], 0
                parts.append(rest)
                size += len(rest)
                if size > 2 * MAX_FRAME or self._stopped.is_set():
                    break
        except Exception as error:
            self._lost = str(error)
        self._put(None)

    def _put(self, line: str | None) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._lines.put(line, timeout=1)
                return

    def renew(self) -> None:
        """Extend the life of the machine, if it is still in use."""
        if not self._stopped.is_set():
            with contextlib.suppress(Exception):  # the next message finds out
                self._machine.renew()

    def interrupt(self) -> None:
        """End the guest; its machine is removed in the background."""
        if not self._stopped.is_set():
            self._stopped.set()
            with contextlib.suppress(queue.Full):
                self._lines.put_nowait(None)  # wakes a waiting `_receive`
            try:
                _REMOVALS.submit(self._machine.end)
            except RuntimeError:  # Python is about to exit
                self._machine.end()


def _parse_line(line: str) -> Frame:
    return parse_frame(parse(line))


def _first_line(spec: GuestSpec) -> str:
    """The code that starts the guest, as one line."""
    limits = spec.limits
    settings: Json = {
        'memory_mb': limits.memory_mb,
        'output_bytes': limits.output_bytes,
        'mounts': [[mount.target, mount.writable] for mount in spec.mounts],
    }
    code = _FIRST_LINE.format(archive=_archive(), settings=dump(settings))
    return f'exec({code!r})\n'


def _archive() -> str:
    folder = guest_folder(*_MORE_FILES)
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob('*.py')):
            archive.write(path, path.relative_to(folder))
    return base64.b64encode(data.getvalue()).decode()
