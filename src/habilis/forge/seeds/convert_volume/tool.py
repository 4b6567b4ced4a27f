"""Volumes in other units."""

# Whole hundred-thousandths of a nanoliter, so that no conversion factor is rounded.
_UNITS = {
    'ml': (100_000_000_000, 'milliliter, milliliters, millilitre, millilitres, cm3, cc'),
    'cl': (1_000_000_000_000, 'centiliter, centiliters, centilitre, centilitres'),
    'dl': (10_000_000_000_000, 'deciliter, deciliters, decilitre, decilitres'),
    'l': (100_000_000_000_000, 'liter, liters, litre, litres'),
    'm3': (100_000_000_000_000_000, 'm³, cubic meter, cubic meters, cubic metre, cubic metres'),
    'tsp': (492_892_159_375, 'teaspoon, teaspoons'),
    'tbsp': (1_478_676_478_125, 'tablespoon, tablespoons'),
    'fl oz': (2_957_352_956_250, 'floz, fluid ounce, fluid ounces'),
    'cup': (23_658_823_650_000, 'cups'),
    'pt': (47_317_647_300_000, 'pint, pints'),
    'qt': (94_635_294_600_000, 'quart, quarts'),
    'gal': (378_541_178_400_000, 'gallon, gallons'),
    'imperial pt': (56_826_125_000_000, 'imperial pint, imperial pints'),
    'imperial gal': (454_609_000_000_000, 'imperial gallon, imperial gallons'),
}


def convert_volume(value: float, from_unit: str, to_unit: str) -> float:
    """Volume in another unit, like gallons to liters, cups to milliliters, teaspoons to tablespoons.

    Units: ml, cl, dl, l, m3; of the US tsp, tbsp, fl oz, cup, pt, qt, gal; imperial pt, imperial gal; or their
    English names. Raises `ValueError` for any other.
    """
    return value * _size(from_unit) / _size(to_unit)


def _size(unit: str) -> int:
    name = unit.strip().lower()
    for symbol, (size, names) in _UNITS.items():
        if name == symbol or name in names.split(', '):
            return size
    raise ValueError(f'{unit!r} is not a unit of volume; use one of: {", ".join(_UNITS)}')
