from tool import convert_base


def _error(number: str, from_base: int, to_base: int) -> str:
    try:
        convert_base(number, from_base, to_base)
    except ValueError as error:
        return str(error)
    return ''


def test_decimal_to_binary_and_back() -> None:
    assert convert_base('10', 10, 2) == '1010'
    assert convert_base('1010', 2, 10) == '10'


def test_hexadecimal_digits_in_either_case() -> None:
    assert convert_base('ff', 16, 10) == '255'
    assert convert_base('FF', 16, 8) == '377'
    assert convert_base('255', 10, 16) == 'ff'


def test_all_digits_of_the_largest_base() -> None:
    assert convert_base('Zz', 36, 10) == '1295'
    assert ''.join(convert_base(str(value), 10, 36) for value in range(36)) == '0123456789abcdefghijklmnopqrstuvwxyz'


def test_zero_and_negative_numbers() -> None:
    assert convert_base('0', 10, 2) == '0'
    assert convert_base('-5', 10, 2) == '-101'


def test_prefixes_and_spaces_are_accepted() -> None:
    assert convert_base(' 0x1F ', 16, 10) == '31'
    assert convert_base('0b11', 2, 10) == '3'


def test_large_numbers_are_exact() -> None:
    assert convert_base('123456789012345678901234567890', 10, 16) == '18ee90ff6c373e0ee4e3f0ad2'


def test_a_digit_beyond_the_base_is_refused() -> None:
    assert "'12' is not a whole number in base 2" in _error('12', 2, 10)
    assert 'not a whole number' in _error('', 10, 2)
    assert 'not a whole number' in _error('1.5', 10, 2)


def test_bases_beyond_2_to_36_are_refused() -> None:
    assert 'between 2 and 36, not 1' in _error('1', 1, 10)
    assert 'between 2 and 36, not 37' in _error('1', 10, 37)
    assert 'between 2 and 36, not 0' in _error('1', 0, 10)
