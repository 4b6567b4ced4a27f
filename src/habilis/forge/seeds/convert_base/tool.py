"""Numbers in other bases."""

_DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'


def convert_base(number: str, from_base: int, to_base: int) -> str:
    """Number written in another base, like binary (2), octal (8), decimal (10) or hexadecimal (16).

    Bases go from 2 to 36; the digits after 9 are a to z. A prefix like 0x is accepted where it fits the base. Raises
    `ValueError` for other bases, and for a text that is not a whole number in its base.
    """
    for base in (from_base, to_base):
        if not 2 <= base <= 36:
            raise ValueError(f'a base is between 2 and 36, not {base}')
    try:
        value = int(number, from_base)
    except ValueError:
        raise ValueError(f'{number!r} is not a whole number in base {from_base}') from None
    return ('-' if value < 0 else '') + _written(abs(value), to_base)


def _written(value: int, base: int) -> str:
    digits = [_DIGITS[value % base]]
    while value := value // base:
        digits.append(_DIGITS[value % base])
    return ''.join(reversed(digits))
