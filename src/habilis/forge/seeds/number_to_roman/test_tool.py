from tool import number_to_roman


def _error(number: int) -> str:
    try:
        number_to_roman(number)
    except ValueError as error:
        return str(error)
    return ''


def test_the_first_ten() -> None:
    assert [number_to_roman(number) for number in range(1, 11)] == 'I II III IV V VI VII VIII IX X'.split()


def test_tens() -> None:
    assert [number_to_roman(number) for number in range(20, 101, 10)] == 'XX XXX XL L LX LXX LXXX XC C'.split()


def test_hundreds() -> None:
    assert [number_to_roman(number) for number in range(200, 901, 100)] == 'CC CCC CD D DC DCC DCCC CM'.split()


def test_years() -> None:
    assert number_to_roman(1994) == 'MCMXCIV'
    assert number_to_roman(2024) == 'MMXXIV'


def test_the_greatest() -> None:
    assert number_to_roman(3999) == 'MMMCMXCIX'


def test_numbers_without_a_numeral_are_refused() -> None:
    for number in (0, -1, 4000):
        assert '1 to 3999' in _error(number)
