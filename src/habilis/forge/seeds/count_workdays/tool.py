"""Working days in a period."""

from datetime import date, timedelta


def count_workdays(start: str, end: str, holidays: list[str] | None = None) -> int:
    """Number of working days (business days, Monday to Friday) from a date to another, both included.

    The dates are written like 2024-02-29. Holidays do not count. Raises `ValueError` for a text that is not such a
    date, and for an end before the start.
    """
    first, last = _parsed(start), _parsed(end)
    if last < first:
        raise ValueError(f'the end, {end}, is before the start, {start}')
    weeks, rest = divmod((last - first).days + 1, 7)
    single = [first + timedelta(days=number) for number in range(rest)]
    free = {day for day in map(_parsed, holidays or []) if first <= day <= last and _is_workday(day)}
    return weeks * 5 + sum(map(_is_workday, single)) - len(free)


def _is_workday(day: date) -> bool:
    return day.isoweekday() <= 5


def _parsed(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'{text!r} is not a date like 2024-02-29') from None
