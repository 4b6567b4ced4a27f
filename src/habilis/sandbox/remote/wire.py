"""What client and server say to each other: numbered frames that survive a lost connection.

A frame is text: a line `number seen kind`, then the body. `number` counts the frames of one side, `seen` is the number
of the last frame that it got from the other. A side keeps its frames until they were seen. After a new connection both
say what they have seen, and send the rest again; a frame that arrives twice is dropped. The client ends its guest by
closing the WebSocket with the code `DONE`; a connection that ends in any other way may be resumed.

| kind | from | body |
|---|---|---|
| `hello` | client | JSON: the spec of a new guest, or its `id` and `seen` after a lost connection; not numbered |
| `welcome` | server | JSON: `id`, `seen`, `isolation`; not numbered |
| `files` | both | JSON: changes of files, which belong to the frame that follows |
| `enter` | client | a request for the kernel |
| `ask` | server | a message of the kernel, which waits for a `reply` |
| `tell` | server | a message of the kernel that waits for nothing: output, the start or end of an async tool |
| `output` | server | output that bypassed the kernel: JSON of stream and text |
| `reply` | client | the reply to `ask` |
| `answer` | server | the answer to `enter` |
| `died` | server | JSON: why the interpreter ended, kind and message |
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast, get_args

from habilis.core.codec import CodecError

Kind = Literal['hello', 'welcome', 'files', 'enter', 'ask', 'tell', 'output', 'reply', 'answer', 'died']
KINDS = frozenset(get_args(Kind))
MAX_FRAME = 96 << 20
"""Maximum size of a frame in bytes: a message of the largest size, or a file of the largest size in base64."""

NO_SUCH_GUEST = 4404
"""Code of the WebSocket if the server does not know the guest (any more)."""

DONE = 4000
"""Code of the WebSocket by which the client ends its guest."""

REFUSED = 4400
"""Code of the WebSocket if the server refuses what was asked; the reason says why."""

MAX_WAITING = 4 << 20
MAX_UNSEEN = 1000
"""Characters and number of the frames that one side may send without hearing from the other."""

_MAX_HEADER = 64


@dataclass(frozen=True)
class Frame:
    """One frame."""

    number: int
    seen: int
    kind: Kind
    body: str

    def encode(self) -> str:
        """The frame as text."""
        return f'{self.number} {self.seen} {self.kind}\n{self.body}'


def parse_frame(text: object) -> Frame:
    """A frame of the other side. Raises `CodecError`."""
    if isinstance(text, str):
        head, _, body = text.partition('\n')
        fields = head.split(' ') if len(head) <= _MAX_HEADER else []
        if len(fields) == 3 and fields[2] in KINDS and all(part.isascii() and part.isdigit() for part in fields[:2]):
            return Frame(int(fields[0]), int(fields[1]), cast('Kind', fields[2]), body)
    msg = 'malformed frame'
    raise CodecError(msg)


class Channel:
    """Numbers the frames of one side, and keeps them until the other side has seen them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = 0
        self._seen = 0
        self._unseen: deque[Frame] = deque()
        self._transmit: Callable[[str], None] | None = None
        self._waiting = 0

    @property
    def seen(self) -> int:
        """Number of the last frame that was received."""
        return self._seen

    @property
    def has_room(self) -> bool:
        """Whether more may be sent before the other side has seen the last frames."""
        return self._waiting < MAX_WAITING and len(self._unseen) < MAX_UNSEEN

    def send(self, kind: Kind, body: str) -> None:
        """Send a frame, now or when there is a connection again."""
        with self._lock:
            self._sent += 1
            frame = Frame(self._sent, self._seen, kind, body)
            self._unseen.append(frame)
            self._waiting += len(body)
            if self._transmit is not None:
                self._transmit(frame.encode())

    def connect(self, transmit: Callable[[str], None], seen: int) -> None:
        """Use a new connection. The other side has seen frames up to this number; the rest is sent again."""
        with self._lock:
            self._forget(seen)
            self._transmit = transmit
            for frame in self._unseen:
                transmit(Frame(frame.number, self._seen, frame.kind, frame.body).encode())

    def disconnect(self) -> None:
        """Keep what is sent from now on."""
        with self._lock:
            self._transmit = None

    def receive(self, frame: Frame) -> bool:
        """Take a frame of the other side. False if it was received before. Raises `CodecError` if one is missing."""
        with self._lock:
            self._forget(frame.seen)
            if frame.number <= self._seen:
                return False
            if frame.number != self._seen + 1:
                msg = f'frame {self._seen + 1} is missing'
                raise CodecError(msg)
            self._seen = frame.number
            return True

    def _forget(self, seen: int) -> None:
        if seen > self._sent:
            msg = 'the other side has seen a frame that was not sent'
            raise CodecError(msg)
        while self._unseen and self._unseen[0].number <= seen:
            self._waiting -= len(self._unseen.popleft().body)
