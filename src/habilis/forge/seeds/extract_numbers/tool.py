"""Numbers in a text."""

import re

_NUMBER = re.compile(
    r"""
    (?: (?<![\w.)]) [-−+] )?                            # a sign, but not the hyphen of 3-4
    (?: \d{1,3} (?:,\d{3})+ (?!\d) | \d+ | (?<!\w)(?=\.\d) )
    (?: \.\d+ )?
    (?: e[-+]?\d+ (?!\w) )?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def extract_numbers(text: str) -> list[int | float]:
    """Numbers found in a text, in their order: whole numbers as int, others as float.

    Reads 1,234.5 (commas between thousands), -3, .5 and 2e6. The parts of 3-4 and of 2024-01-31 are not negative.
    """
    found = (match[0].replace(',', '').replace('−', '-') for match in _NUMBER.finditer(text))
    return [int(number) if number.lstrip('+-').isdigit() else float(number) for number in found]
