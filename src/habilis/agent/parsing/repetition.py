"""Detects a reply that repeats itself: it would go on until its last token, for minutes, and be of no use."""

LINES = 48
DISTINCT = 8
"""A reply is repeating when its last `LINES` lines have at most this many distinct ones. A long list has more."""


def is_repeating(text: str) -> bool:
    """Whether the end of a text that is still being written is the same few lines again and again."""
    last = [line for line in text.rsplit('\n', LINES + 1)[1:-1] if line.strip()]
    return len(last) == LINES and len(set(last)) <= DISTINCT
