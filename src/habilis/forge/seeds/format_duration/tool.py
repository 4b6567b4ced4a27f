"""Durations in words."""

import math

_UNITS = {'day': 86_400_000, 'hour': 3_600_000, 'minute': 60_000}


def format_duration(seconds: float) -> str:
    """Duration in words, from a number of seconds: 3723 seconds are "1 hour 2 minutes 3 seconds".

    Rounded to milliseconds; a negative duration begins with a minus. Raises `ValueError` for infinity and NaN.
    """
    if not math.isfinite(seconds):
        raise ValueError(f'{seconds} is not a duration')
    total = round(seconds * 1000)
    words, left = list[str](), abs(total)
    for unit, size in _UNITS.items():
        count, left = divmod(left, size)
        if count:
            words.append(_counted(str(count), unit))
    if left or not words:
        words.append(_counted(f'{left / 1000:g}', 'second'))
    return ('-' if total < 0 else '') + ' '.join(words)


def _counted(count: str, unit: str) -> str:
    return f'{count} {unit}' if count == '1' else f'{count} {unit}s'
