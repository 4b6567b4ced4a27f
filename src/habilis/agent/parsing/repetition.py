"""A small model that repeats itself would go on until its last token: minutes, and nothing comes of it."""

LINES = 48
DIFFERENT = 8
"""So many of the last lines at most, where it goes in circles. A long list has more."""


def goes_in_circles(text: str) -> bool:
    """Whether the end of a text that is still being written is the same few lines again and again."""
    last = [line for line in text.rsplit('\n', LINES + 1)[1:-1] if line.strip()]
    return len(last) == LINES and len(set(last)) <= DIFFERENT
