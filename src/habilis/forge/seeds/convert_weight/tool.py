"""Weights in other units."""

# Whole nanograms, so that no conversion factor is rounded.
_UNITS = {
    'mg': (1_000_000, 'milligram, milligrams'),
    'g': (1_000_000_000, 'gram, grams, gramme, grammes'),
    'kg': (1_000_000_000_000, 'kilo, kilos, kilogram, kilograms'),
    't': (1_000_000_000_000_000, 'tonne, tonnes, metric ton, metric tons'),
    'oz': (28_349_523_125, 'ounce, ounces'),
    'lb': (453_592_370_000, 'lbs, pound, pounds'),
    'st': (6_350_293_180_000, 'stone, stones'),
    'us ton': (907_184_740_000_000, 'us tons, short ton, short tons'),
}


def convert_weight(value: float, from_unit: str, to_unit: str) -> float:
    """Weight or mass in another unit, like pounds to kilograms or ounces to grams.

    Units: mg, g, kg, t (metric), oz, lb, st, us ton, or their English names. Raises `ValueError` for any other.
    """
    return value * _nanograms(from_unit) / _nanograms(to_unit)


def _nanograms(unit: str) -> int:
    name = unit.strip().lower()
    for symbol, (size, names) in _UNITS.items():
        if name == symbol or name in names.split(', '):
            return size
    raise ValueError(f'{unit!r} is not a unit of weight; use one of: {", ".join(_UNITS)}')
