"""Dates in common notations."""

import re
from datetime import date

_MONTHS = 'january february march april may june july august september october november december'.split()
_WEEKDAY = re.compile(r'^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.? ')
_YEAR_FIRST = re.compile(r'(\d{4})([-/.])(\d{1,2})\2(\d{1,2})')
_YEAR_LAST = re.compile(r'(\d{1,2})([-/.])(\d{1,2})\2(\d{4})')
_DAY_AND_MONTH = re.compile(r'(\d{1,2})(?:st|nd|rd|th|\.)? (?:of )?([a-z]+)\.? (\d{4})')
_MONTH_AND_DAY = re.compile(r'([a-z]+)\.? (\d{1,2})(?:st|nd|rd|th)? (\d{4})')


def parse_date(text: str, day_first: bool | None = None) -> str:
    """Date in the standard notation, like 2024-03-05, read from a common one like "March 5, 2024" or "5.3.2024".

    In 03/05/2024, `day_first` says whether the first number is the day (True: Europe) or the month (False: US); without
    it, only a date with one possible meaning is accepted. Month names are English. Raises `ValueError` for other texts.
    """
    words = _WEEKDAY.sub('', ' '.join(text.lower().replace(',', ' ').split()))
    try:
        return date(*_year_month_day(words, day_first)).isoformat()
    except ValueError as error:
        raise ValueError(f'{text!r} is not a date: {error}') from None


def _year_month_day(words: str, day_first: bool | None) -> tuple[int, int, int]:
    if match := _YEAR_FIRST.fullmatch(words):
        return int(match[1]), int(match[3]), int(match[4])
    if match := _YEAR_LAST.fullmatch(words):
        dotted = match[2] == '.'
        day, month = _day_and_month(int(match[1]), int(match[3]), True if dotted else day_first)
        return int(match[4]), month, day
    if match := _DAY_AND_MONTH.fullmatch(words):
        return int(match[3]), _month_number(match[2]), int(match[1])
    if match := _MONTH_AND_DAY.fullmatch(words):
        return int(match[3]), _month_number(match[1]), int(match[2])
    raise ValueError('write it like 2024-03-05, 5 March 2024 or March 5, 2024')


def _day_and_month(first: int, second: int, day_first: bool | None) -> tuple[int, int]:
    if day_first is None and first <= 12 and second <= 12 and first != second:
        raise ValueError('it is ambiguous; say with day_first whether the day or the month comes first')
    if day_first or (day_first is None and first > 12):
        return first, second
    return second, first


def _month_number(name: str) -> int:
    for number, month in enumerate(_MONTHS, start=1):
        if name in (month, month[:3], month[:4]):
            return number
    raise ValueError(f'{name!r} is not the English name of a month')
