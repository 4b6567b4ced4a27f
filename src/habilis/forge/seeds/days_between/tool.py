"""Days from one date to another."""

from datetime import date


def days_between(start: str, end: str) -> int:
    """Number of days between two dates, from the start to the end.

    The dates are written like 2024-02-29. Negative if the end is before the start. Raises `ValueError` for a text that
    is not such a date.
    """
    return (_parsed(end) - _parsed(start)).days


def _parsed(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'{text!r} is not a date like 2024-02-29') from None
