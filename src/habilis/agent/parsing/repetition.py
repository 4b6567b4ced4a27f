"""Detects a reply that repeats itself. It would continue until the token limit, for minutes, and be useless."""

LINES = 48
DISTINCT = 8
"""A reply repeats itself if its last `LINES` lines have at most this many distinct ones. A long list has more."""


def is_repeating(text: str) -> bool:
    """Whether the end of a text that is still streaming repeats the same few lines."""
    last = [line for line in text.rsplit('\n', LINES + 1)[1:-1] if line.strip()]
    return len(last) == LINES and len(set(last)) <= DISTINCT
