"""Lengths in other units."""

# Whole micrometers, so that no conversion factor is rounded.
_UNITS = {
    'mm': (1_000, 'millimeter, millimeters, millimetre, millimetres'),
    'cm': (10_000, 'centimeter, centimeters, centimetre, centimetres'),
    'm': (1_000_000, 'meter, meters, metre, metres'),
    'km': (1_000_000_000, 'kilometer, kilometers, kilometre, kilometres'),
    'in': (25_400, 'inch, inches, "'),
    'ft': (304_800, "foot, feet, '"),
    'yd': (914_400, 'yard, yards'),
    'mi': (1_609_344_000, 'mile, miles'),
    'nmi': (1_852_000_000, 'nautical mile, nautical miles'),
}


def convert_length(value: float, from_unit: str, to_unit: str) -> float:
    """Length or distance in another unit, like miles to kilometers, inches to centimeters, feet to meters.

    Units: mm, cm, m, km, in, ft, yd, mi, nmi, or their English names. Raises `ValueError` for any other.
    """
    return value * _micrometers(from_unit) / _micrometers(to_unit)


def _micrometers(unit: str) -> int:
    name = unit.strip().lower()
    for symbol, (size, names) in _UNITS.items():
        if name == symbol or name in names.split(', '):
            return size
    raise ValueError(f'{unit!r} is not a unit of length; use one of: {", ".join(_UNITS)}')
