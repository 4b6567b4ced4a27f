"""Check digits of books."""

import re


def is_valid_isbn(isbn: str) -> bool:
    """Whether the ISBN of a book is valid: 10 or 13 digits with the right check digit.

    Spaces and hyphens do not matter.
    """
    digits = re.sub(r'[\s-]', '', isbn).upper()
    if re.fullmatch('[0-9]{9}[0-9X]', digits):
        values = [10 if digit == 'X' else int(digit) for digit in digits]
        return sum((10 - place) * value for place, value in enumerate(values)) % 11 == 0
    if re.fullmatch('97[89][0-9]{10}', digits):
        return sum((1 + place % 2 * 2) * int(digit) for place, digit in enumerate(digits)) % 10 == 0
    return False
