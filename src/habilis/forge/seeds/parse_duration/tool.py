"""Seconds of a written duration."""

import re

_SECONDS = {
    'w': 604_800,
    'd': 86_400,
    'h': 3_600,
    'm': 60,
    's': 1,
}
_NAMES = {
    'w': 'wk week weeks',
    'd': 'day days',
    'h': 'hr hrs hour hours',
    'm': 'min mins minute minutes',
    's': 'sec secs second seconds',
}
_PART = re.compile(r'(\d+(?:\.\d+)?|\.\d+)\s*([a-z]+)')


def parse_duration(text: str) -> float:
    """Number of seconds in a written duration, like "1h 30m", "2 days, 3 hours" or "1.5 minutes".

    Units: w, d, h, m, s, or their English names. Raises `ValueError` for anything else.
    """
    words = text.lower()
    if re.sub(r'\band\b|[\s,]', '', _PART.sub('', words)):
        raise ValueError(f'{text!r} is not a duration like "1h 30m" or "2 days, 3 hours"')
    parts = [float(number) * _SECONDS[_symbol(unit)] for number, unit in _PART.findall(words)]
    if not parts:
        raise ValueError(f'{text!r} has no duration like "1h 30m" in it')
    return sum(parts)


def _symbol(unit: str) -> str:
    for symbol, names in _NAMES.items():
        if unit == symbol or unit in names.split():
            return symbol
    raise ValueError(f'{unit!r} is not a unit of time; use one of: {", ".join(_SECONDS)}')
