"""Weekdays of dates."""

from datetime import date

_NAMES = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()


def weekday_of(day: str) -> str:
    """Day of the week of a date, in English: Monday to Sunday.

    The date is written like 2024-02-29. Raises `ValueError` for a text that is not such a date.
    """
    try:
        return _NAMES[date.fromisoformat(day.strip()).weekday()]
    except ValueError:
        raise ValueError(f'{day!r} is not a date like 2024-02-29') from None
