"""Roman numerals."""

import re

_VALUES = {'M': 1000, 'D': 500, 'C': 100, 'L': 50, 'X': 10, 'V': 5, 'I': 1}
_NUMERAL = re.compile('M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})')


def roman_to_number(numeral: str) -> int:
    """Number that a Roman numeral stands for: MMXXIV is 2024.

    In capital or small letters. Raises `ValueError` for a text that is not a numeral from I to MMMCMXCIX.
    """
    letters = numeral.strip().upper()
    if not letters or not _NUMERAL.fullmatch(letters):
        raise ValueError(f'{numeral!r} is not a Roman numeral')
    total, highest = 0, 0
    for letter in reversed(letters):
        value = _VALUES[letter]
        total += value if value >= highest else -value
        highest = max(highest, value)
    return total
