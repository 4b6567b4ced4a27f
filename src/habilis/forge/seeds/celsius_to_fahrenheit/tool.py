"""Temperature in Fahrenheit."""

_ABSOLUTE_ZERO = -273.15


def celsius_to_fahrenheit(celsius: float) -> float:
    """Temperature in degrees Fahrenheit, converted from Celsius.

    Raises `ValueError` below absolute zero, -273.15 °C.
    """
    if celsius < _ABSOLUTE_ZERO:
        raise ValueError(f'{celsius} °C is below absolute zero, {_ABSOLUTE_ZERO} °C')
    return celsius * 9 / 5 + 32
