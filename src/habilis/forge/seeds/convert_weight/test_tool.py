from tool import convert_weight


def _error(from_unit: str, to_unit: str) -> str:
    try:
        convert_weight(1, from_unit, to_unit)
    except ValueError as error:
        return str(error)
    return ''


def test_every_unit_in_grams() -> None:
    sizes = {'mg': 0.001, 'g': 1, 'kg': 1000, 't': 1e6, 'oz': 28.349523125, 'lb': 453.59237, 'st': 6350.29318}
    for unit, grams in (sizes | {'us ton': 907184.74}).items():
        assert convert_weight(1, unit, 'g') == grams, unit


def test_every_unit_has_an_english_name() -> None:
    names = ('milligrams', 'gram', 'kilos', 'tonnes', 'ounces', 'pounds', 'stone', 'short tons')
    for name, unit in zip(names, ('mg', 'g', 'kg', 't', 'oz', 'lb', 'st', 'us ton'), strict=True):
        assert convert_weight(3, name, unit) == 3, name


def test_common_conversions_are_exact() -> None:
    assert convert_weight(1, 'lb', 'kg') == 0.45359237
    assert convert_weight(1, 'lb', 'oz') == 16
    assert convert_weight(1, 'st', 'lb') == 14
    assert convert_weight(1, 'us ton', 'lb') == 2000


def test_case_and_spaces_do_not_matter() -> None:
    assert convert_weight(2, ' KG ', 'Grams') == 2000


def test_zero_and_negative_weights() -> None:
    assert convert_weight(0, 'kg', 'lb') == 0
    assert convert_weight(-1, 'kg', 'g') == -1000


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    assert "'m' is not a unit of weight" in _error('m', 'kg')
    assert 'us ton' in _error('kg', 'ton')
    assert _error('', 'g')
