"""Detects a reply that repeats itself. It would continue until the token limit, for minutes, and be useless.

A reply repeats itself if its end is the same text several times in a row, character by character, whatever its length:
a word, a line, a paragraph, a block of code. Rows of a table that are similar but differ in a digit are no repetition.
"""

import math

LINES = 48
"""Number of lines after which a repeated line, or group of lines, is a repetition."""

CHARACTERS = 1000
SHORT_PERIOD = 20
SHORT_PERIOD_CHARACTERS = 2000
"""The same in characters. Short periods need more of them: a list of zeros, a ruler and an indent are ordinary text."""

REPEATS = 4
LONG_PERIOD = 200
LONG_PERIOD_REPEATS = 3
"""How often the text must be there at least; a long one repeats sooner."""

HOSTED_PATIENCE = 4
"""Factor for models whose time costs nobody else: what they repeat is more often asked for."""

_WINDOW = 24
"""Length of the text by which an earlier occurrence is found."""

_KEPT = 1 << 15
"""At least so many of the last characters are compared: the longest period that is found."""

_BLOCK = 256


class RepetitionDetector:
    """Reads a text as it is written. The time for each character does not depend on the length of the text."""

    def __init__(self, patience: int = 1) -> None:
        self._patience = patience
        self._text = ''
        self._dropped = 0
        self._last_seen: dict[str, int] = {}
        """Where each window ended last, counted from the beginning of the whole text."""

        self._period = 0
        """Distance at which the end of the text repeats; 0 for none."""

        self._matched = 0
        self._needed = 0.0

    def feed(self, text: str) -> bool:
        """Whether the text so far repeats itself at its end."""
        start = len(self._text)
        self._text += text
        for end in range(start + 1, len(self._text) + 1):
            self._read_character(end)
        if len(self._text) > 2 * _KEPT:
            self._drop(len(self._text) - _KEPT)
        return self._period > 0 and self._matched >= self._needed

    def _read_character(self, end: int) -> None:
        text, period = self._text, self._period
        if period and end > period and text[end - 1] == text[end - 1 - period]:
            self._matched += 1
        else:
            self._period = period = 0
        if end < _WINDOW:
            return
        window, place = text[end - _WINDOW : end], self._dropped + end
        if not period:
            before = self._last_seen.get(window)
            if before is not None and place - before <= end - _WINDOW:
                self._start(end, place - before)
        self._last_seen[window] = place

    def _start(self, end: int, period: int) -> None:
        """The last characters were there before: compare at this distance, and see how far back they are the same."""
        unit = self._text[end - period : end]
        self._period, self._needed = period, needed_characters(unit, self._patience) - period
        matched, most = _WINDOW, end - period
        while matched < most and matched < self._needed:
            size = min(_BLOCK, most - matched)
            stop = end - matched
            if self._text[stop - size : stop] != self._text[stop - size - period : stop - period]:
                while self._text[stop - 1] == self._text[stop - 1 - period]:
                    stop -= 1
                matched = end - stop
                break
            matched += size
        self._matched = matched

    def _drop(self, count: int) -> None:
        self._text = self._text[count:]
        self._dropped += count
        self._last_seen = {window: end for window, end in self._last_seen.items() if end >= self._dropped + _WINDOW}


def needed_characters(unit: str, patience: int) -> float:
    """Length of a text that repeats this unit, from which on it is a repetition."""
    period = len(unit)
    repeats = LONG_PERIOD_REPEATS if period >= LONG_PERIOD else REPEATS
    characters = CHARACTERS if period >= SHORT_PERIOD else SHORT_PERIOD_CHARACTERS
    needed = patience * characters
    lines = unit.count('\n')
    if lines and not unit.isspace():
        needed = min(needed, math.ceil(patience * LINES / lines) * period)
    return max(needed, repeats * period)


def is_repeating(text: str) -> bool:
    """Whether a text repeats itself at its end."""
    return RepetitionDetector().feed(text)
