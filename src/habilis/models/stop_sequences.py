"""Stop sequences for protocols without them: the text is truncated before the first one."""

from collections.abc import Iterable


class StopFilter:
    """Truncates streamed text at a stop sequence. Holds back text that may be the start of one."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ''
        self._done = False

    @property
    def is_done(self) -> bool:
        """Whether a stop sequence was found: the rest is dropped."""
        return self._done

    def truncate(self, text: str) -> str:
        """The text before the stop sequence that is complete first: there a stream ends, whatever follows."""
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        return text[: min(found)[1]] if found else text

    def feed(self, chunk: str) -> str:
        """Add a chunk; return the text that can be shown now."""
        if self._done:
            return ''
        self._held += chunk
        text = self.truncate(self._held)
        if len(text) < len(self._held):
            self._done, self._held = True, ''
            return text
        end = len(text) - self._partial_stop_length(text)
        self._held = text[end:]
        return text[:end]

    def flush(self) -> str:
        """Return the text still held back, at the end of the stream."""
        rest, self._held = self._held, ''
        return rest

    def _partial_stop_length(self, text: str) -> int:
        """Number of characters at the end that may be the start of a stop sequence."""
        longest = max((len(stop) for stop in self._stops), default=0)
        sizes = range(min(longest - 1, len(text)), 0, -1)
        return next((size for size in sizes if any(stop.startswith(text[-size:]) for stop in self._stops)), 0)
