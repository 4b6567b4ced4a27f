"""stdout and stderr of a cell, sent to the host while it runs."""

import io

from habilis.sandbox.guest.bridge import Bridge, CellEnded

EAGER_WRITES = 1000
"""So many lines of a cell go out at once, so that nothing is lost when it is killed; later ones go in blocks."""

BLOCK = 8192
LARGE = 1 << 20
"""More than this goes out in pieces, so that the output limit comes before that of memory."""


class HostStream(io.TextIOBase):
    """A text stream that goes to the host. It counts, and ends the cell at the limit."""

    def __init__(self, bridge: Bridge, code: str, name: str) -> None:
        self._bridge = bridge
        self._code = code
        self._name = name
        self.pending: list[str] = []
        self._size = 0
        self.writes = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Text is text here; bytes are made by the transport."""
        return 'utf-8'

    @property
    def errors(self) -> str:  # type: ignore[override]
        """What cannot be encoded is shown escaped."""
        return 'backslashreplace'

    @property
    def name(self) -> str:
        """As the stream of an ordinary Python would say."""
        return self._name

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str, /) -> int:
        """Take text; a line goes out as soon as it is whole."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f'write() argument must be str, not {type(text).__name__}'
            raise TypeError(msg)
        self.pending.append(text)
        self._size += len(text)
        if self._size >= BLOCK or ('\n' in text and self.writes < EAGER_WRITES):
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is pending."""
        if self.pending:
            text = ''.join(self.pending)
            if not text.isascii():  # half a surrogate pair cannot leave the sandbox; show it escaped
                text = text.encode('utf-8', 'backslashreplace').decode()
            self.pending.clear()
            self._size = 0
            self.writes += 1
            for start in range(0, len(text), LARGE):
                self._bridge.write(self._code, text[start : start + LARGE])

    def finish(self) -> str | None:
        """Send the rest; the kind of the limit if the host says that this was too much."""
        try:
            self.flush()
        except CellEnded as ended:
            return ended.kind
        return None

    def close(self) -> None:
        """A cell may close its stdout; the next cell has it back."""
        self.flush()
