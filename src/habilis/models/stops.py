"""Stop words for a provider that has none: the text is cut where the first of them begins."""

from collections.abc import Iterable


class StopCutter:
    """Cuts a text that comes bit by bit. What may be the begin of a stop word is held back until that is clear."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ''
        self._done = False

    def cut(self, text: str) -> str:
        """A whole text, up to the first stop word."""
        return text[: min((at for stop in self._stops if (at := text.find(stop)) >= 0), default=len(text))]

    def feed(self, bit: str) -> str:
        """What may be shown now that this bit came."""
        if self._done:
            return ''
        self._held += bit
        shown = self.cut(self._held)
        if len(shown) < len(self._held):
            self._done, self._held = True, ''
            return shown
        sure = len(shown) - self._open_end(shown)
        self._held = shown[sure:]
        return shown[:sure]

    def rest(self) -> str:
        """What was held back and is no stop word, now that the text is over."""
        rest, self._held = self._held, ''
        return rest

    def _open_end(self, text: str) -> int:
        """How many characters at the end may be the begin of a stop word."""
        longest = max((len(stop) for stop in self._stops), default=0)
        sizes = range(min(longest - 1, len(text)), 0, -1)
        return next((size for size in sizes if any(stop.startswith(text[-size:]) for stop in self._stops)), 0)
