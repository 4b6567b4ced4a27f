"""A guest on a server, reached through a WebSocket that may break: see `wire.py`."""

import contextlib
import threading
import time

from habilis.core.codec import CodecError, Json, dump, parse
from habilis.core.errors import BackendNotFound, SandboxError
from habilis.sandbox.contract import GuestDied, GuestSpec
from habilis.sandbox.remote.framed_guest import FramedGuest
from habilis.sandbox.remote.wire import DONE, MAX_FRAME, NO_SUCH_GUEST, REFUSED, Channel, Frame, Kind, parse_frame

try:
    from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus, WebSocketException
    from websockets.sync.client import ClientConnection, connect
except ImportError as error:
    msg = 'the client of remote sandboxes is missing: pip install "habilis[remote]"'
    raise ImportError(msg) from error

KEY_VARIABLE = 'HABILIS_SANDBOX_KEY'
"""Where the key is if none is passed."""

RESUME_SECONDS = 30.0
"""How long the client tries to reach the server again after the connection was lost."""

RETRIES = 3
"""How often a guest is started again if the connection is lost before it is there."""

FIRST_PAUSE = 0.05


class RemoteGuest(FramedGuest):
    """The client's side of a guest on a server."""

    def __init__(self, url: str, key: str | None, spec: GuestSpec) -> None:
        super().__init__(spec)
        self._url = url
        self._key = key
        self._channel = Channel()
        self._stopped = threading.Event()
        self._connection, welcome = self._open(dump({'spec': _describe(spec)}))
        self._id = str(welcome.get('id'))
        self.isolation = f'{str(welcome.get("isolation", ""))[:300]} (on {url})'
        self._channel.connect(self._transmit, 0)

    def _send(self, kind: Kind, body: str) -> None:
        self._channel.send(kind, body)

    def _transmit(self, text: str) -> None:
        with contextlib.suppress(ConnectionClosed, OSError):  # the next `recv` finds out, and connects again
            self._connection.send(text)

    def _receive(self) -> Frame:
        """The next frame that was not received before. Connects again if needed."""
        while True:
            if self._stopped.is_set():
                raise GuestDied('cancelled', 'interrupted')
            try:
                text = self._connection.recv()
            except (ConnectionClosed, OSError) as error:
                self._resume(error)
                continue
            frame = parse_frame(text)
            if self._channel.receive(frame):
                return frame

    # The connection ---------------------------------------------------------------------------------------------------

    def _open(self, hello: str) -> tuple[ClientConnection, dict[str, Json]]:
        """Open a connection and greet the server."""
        headers = {'Authorization': f'Bearer {self._key}'} if self._key else {}
        address = 'ws' + self._url.removeprefix('http').rstrip('/') + '/v1/guests'
        made = connect(address, additional_headers=headers, compression=None, max_size=MAX_FRAME).__enter__()
        try:
            made.send(Frame(0, 0, 'hello', hello).encode())
            frame = parse_frame(made.recv(timeout=60))
            welcome = parse(frame.body) if frame.kind == 'welcome' else None
            if not isinstance(welcome, dict):
                msg = 'no welcome'
                raise CodecError(msg)
        except BaseException:
            made.close()
            raise
        return made, welcome

    def _resume(self, lost: Exception) -> None:
        """Connect again to the same guest. Raises `GuestDied` if that is not possible."""
        self._channel.disconnect()
        end = time.monotonic() + RESUME_SECONDS
        pause = FIRST_PAUSE
        while not self._stopped.wait(pause):
            try:
                self._connection.close()
                hello = dump({'id': self._id, 'seen': self._channel.seen})
                self._connection, welcome = self._open(hello)
                seen = welcome.get('seen')
                self._channel.connect(self._transmit, seen if isinstance(seen, int) else 0)
            except (WebSocketException, OSError, CodecError, TimeoutError) as error:
                lost = error
            else:
                return
            if _is_final(lost) or time.monotonic() > end:
                raise GuestDied('broken', f'the connection to the server was lost: {_reason(lost)}') from None
            pause = min(2 * pause, 2.0)
        raise GuestDied('cancelled', 'interrupted')

    def interrupt(self) -> None:
        """End the guest: a closed WebSocket says so to the server, a broken one does not."""
        if not self._stopped.is_set():
            self._stopped.set()
            connection = self._connection
            threading.Thread(target=connection.close, args=(DONE,), name='habilis-remote-close', daemon=True).start()


def start(url: str, key: str | None, spec: GuestSpec) -> RemoteGuest:
    """Start a guest on the server. The errors say what to do."""
    try:
        return _start(url, key, spec)
    except InvalidStatus as error:
        raise SandboxError(_refusal(url, error)) from error
    except ConnectionClosed as error:
        msg = f'the server {url} refused: {_reason(error)}'
        raise SandboxError(msg) from error
    except (WebSocketException, OSError, CodecError, TimeoutError) as error:
        msg = f'no sandbox server answers at {url} ({error}): check the url, or start one: habilis serve sandboxes'
        raise BackendNotFound(msg) from error


def _start(url: str, key: str | None, spec: GuestSpec) -> RemoteGuest:
    """Start a guest; again if the connection is lost before it is there. One that was started in vain expires."""
    for _ in range(RETRIES):
        try:
            return RemoteGuest(url, key, spec)
        except (ConnectionClosed, InvalidMessage) as error:
            if _is_final(error):
                raise
    return RemoteGuest(url, key, spec)


def _refusal(url: str, error: InvalidStatus) -> str:
    status = error.response.status_code
    if status in (401, 403):
        advice = f'set {KEY_VARIABLE}, or pass key=…, to a key that the server was started with'
        return f'the server {url} refused the key ({status}): {advice}'
    if status == 429:
        after = error.response.headers.get('Retry-After', 'some')
        return f'the server {url} has too many sandboxes or requests of this key; try again in {after} s'
    return f'the server {url} answered {status}; is it `habilis serve sandboxes`?'


def _is_final(error: Exception) -> bool:
    if isinstance(error, InvalidStatus):
        return error.response.status_code in (401, 403, 404)
    return (
        isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.code in (NO_SUCH_GUEST, REFUSED)
    )


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.reason:
        return error.rcvd.reason
    return str(error) or type(error).__name__


def _describe(spec: GuestSpec) -> Json:
    """The spec, as the server needs it: without the folders of this machine."""
    limits = spec.limits
    return {
        'limits': {
            'seconds': limits.seconds,
            'memory_mb': limits.memory_mb,
            'output_bytes': limits.output_bytes,
            'calls': limits.calls,
            'cpu': limits.cpu,
        },
        'mounts': [[mount.target, mount.writable] for mount in spec.mounts],
    }
