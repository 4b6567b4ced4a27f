"""A date some months later or earlier."""

from calendar import monthrange
from datetime import date


def add_months(day: str, months: int) -> str:
    """Date a number of months after a date, or before it if the number is negative.

    Both dates are written like 2024-02-29. Where the month is too short for the day, the result is the last day of the
    month: one month after 2024-01-31 is 2024-02-29. Raises `ValueError` for a text that is not such a date, and for a
    result outside the years 1 to 9999.
    """
    start = _parsed(day)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError(f'{months} months from {day} is in the year {year}; only 1 to 9999 are possible')
    last = monthrange(year, month + 1)[1]
    return date(year, month + 1, min(start.day, last)).isoformat()


def _parsed(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'{text!r} is not a date like 2024-02-29') from None
