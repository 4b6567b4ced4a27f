"""Roman numerals."""

_NUMERALS = {
    'M': 1000,
    'CM': 900,
    'D': 500,
    'CD': 400,
    'C': 100,
    'XC': 90,
    'L': 50,
    'XL': 40,
    'X': 10,
    'IX': 9,
    'V': 5,
    'IV': 4,
    'I': 1,
}


def number_to_roman(number: int) -> str:
    """Roman numeral of a number from 1 to 3999: 2024 is MMXXIV.

    Raises `ValueError` for other numbers, which have no usual numeral.
    """
    if not 1 <= number <= 3999:
        raise ValueError(f'Roman numerals go from 1 to 3999, not to {number}')
    numeral, left = '', number
    for letters, value in _NUMERALS.items():
        times, left = divmod(left, value)
        numeral += letters * times
    return numeral
