from tool import roman_to_number


def _error(numeral: str) -> str:
    try:
        roman_to_number(numeral)
    except ValueError as error:
        return str(error)
    return ''


def test_the_first_ten() -> None:
    numerals = 'I II III IV V VI VII VIII IX X'.split()
    assert [roman_to_number(numeral) for numeral in numerals] == list(range(1, 11))


def test_tens_and_hundreds() -> None:
    numerals = 'XX XL L LX XC C CD D DC CM M'.split()
    assert [roman_to_number(numeral) for numeral in numerals] == [20, 40, 50, 60, 90, 100, 400, 500, 600, 900, 1000]


def test_years() -> None:
    assert roman_to_number('MCMXCIV') == 1994
    assert roman_to_number('MMXXIV') == 2024


def test_the_greatest() -> None:
    assert roman_to_number('MMMCMXCIX') == 3999


def test_small_letters_and_spaces_around() -> None:
    assert roman_to_number(' xiv ') == 14


def test_wrong_numerals_are_refused() -> None:
    for wrong in ('IIII', 'VV', 'IC', 'IXI', 'MMMM', 'LC', 'XXL', 'A', '12', '', '  '):
        assert 'not a Roman numeral' in _error(wrong), wrong
