from tool import convert_volume


def _error(from_unit: str, to_unit: str) -> str:
    try:
        convert_volume(1, from_unit, to_unit)
    except ValueError as error:
        return str(error)
    return ''


def test_metric_units() -> None:
    for unit, milliliters in {'ml': 1, 'cl': 10, 'dl': 100, 'l': 1000, 'm3': 1e6}.items():
        assert convert_volume(1, unit, 'ml') == milliliters, unit


def test_units_of_the_us() -> None:
    for unit, teaspoons in {'tsp': 1, 'tbsp': 3, 'fl oz': 6, 'cup': 48, 'pt': 96, 'qt': 192, 'gal': 768}.items():
        assert convert_volume(1, unit, 'tsp') == teaspoons, unit
    assert convert_volume(1, 'gal', 'l') == 3.785411784
    assert convert_volume(1, 'tsp', 'ml') == 4.92892159375


def test_imperial_units() -> None:
    assert convert_volume(1, 'imperial gal', 'l') == 4.54609
    assert convert_volume(1, 'imperial gal', 'imperial pt') == 8


def test_every_unit_has_an_english_name() -> None:
    names = {'ml': 'milliliters', 'cl': 'centilitre', 'dl': 'deciliters', 'l': 'litres', 'm3': 'cubic meters'}
    names |= {'tsp': 'teaspoon', 'tbsp': 'tablespoons', 'fl oz': 'fluid ounces', 'cup': 'cups', 'pt': 'pints'}
    names |= {'qt': 'quarts', 'gal': 'gallon', 'imperial pt': 'imperial pint', 'imperial gal': 'imperial gallons'}
    for unit, name in names.items():
        assert convert_volume(3, name, unit) == 3, name


def test_case_and_spaces_do_not_matter() -> None:
    assert convert_volume(2, ' L ', 'Milliliters') == 2000


def test_zero_and_negative_volumes() -> None:
    assert convert_volume(0, 'l', 'gal') == 0
    assert convert_volume(-1, 'l', 'dl') == -10


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    assert "'kg' is not a unit of volume" in _error('kg', 'l')
    assert 'tbsp' in _error('l', 'barrel')
    assert _error('', 'l')
