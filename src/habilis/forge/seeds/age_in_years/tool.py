"""Ages of people."""

from datetime import date


def age_in_years(birth_date: str, on_date: str) -> int:
    """Age in whole years that somebody born on a date has on another date.

    The dates are written like 2024-02-29. Who is born on 29 February has the birthday on 1 March in other years. Raises
    `ValueError` for a text that is not such a date, and for a date before the birth.
    """
    born, today = _parsed(birth_date), _parsed(on_date)
    if today < born:
        raise ValueError(f'{on_date} is before the birth on {birth_date}')
    had_birthday = (today.month, today.day) >= (born.month, born.day)
    return today.year - born.year - (not had_birthday)


def _parsed(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'{text!r} is not a date like 2024-02-29') from None
