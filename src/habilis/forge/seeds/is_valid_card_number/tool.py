"""Check digits of card numbers."""

import re


def is_valid_card_number(number: str) -> bool:
    """Whether a credit card number is valid: 12 to 19 digits with the right check digit (Luhn).

    Spaces and hyphens do not matter. It does not tell whether such a card exists.
    """
    digits = re.sub(r'[\s-]', '', number)
    if not re.fullmatch('[0-9]{12,19}', digits):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(sum(divmod(value, 10)) for value in doubled) % 10 == 0
