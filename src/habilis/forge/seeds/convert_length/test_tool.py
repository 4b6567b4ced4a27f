from tool import convert_length


def _error(from_unit: str, to_unit: str) -> str:
    try:
        convert_length(1, from_unit, to_unit)
    except ValueError as error:
        return str(error)
    return ''


def test_every_unit_in_millimeters() -> None:
    sizes = {'mm': 1, 'cm': 10, 'm': 1e3, 'km': 1e6, 'in': 25.4, 'ft': 304.8, 'yd': 914.4, 'mi': 1609344, 'nmi': 1852e3}
    for unit, millimeters in sizes.items():
        assert convert_length(1, unit, 'mm') == millimeters, unit


def test_every_unit_has_an_english_name() -> None:
    names = ('millimeters', 'centimetre', 'meter', 'kilometres', 'inches', 'feet', 'yard', 'miles', 'nautical mile')
    for name, unit in zip(names, 'mm cm m km in ft yd mi nmi'.split(), strict=True):
        assert convert_length(3, name, unit) == 3, name


def test_common_conversions_are_exact() -> None:
    assert convert_length(1, 'mi', 'km') == 1.609344
    assert convert_length(6, 'ft', 'in') == 72
    assert convert_length(0.1, 'km', 'm') == 100


def test_case_and_spaces_do_not_matter() -> None:
    assert convert_length(2, ' KM ', 'Meters') == 2000


def test_zero_and_negative_lengths() -> None:
    assert convert_length(0, 'm', 'ft') == 0
    assert convert_length(-1, 'yd', 'ft') == -3


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    assert "'parsec' is not a unit of length" in _error('parsec', 'm')
    assert 'nmi' in _error('m', 'kg')
    assert _error('', 'm')
