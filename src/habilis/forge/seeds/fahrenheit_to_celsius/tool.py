"""Temperature in Celsius."""

_ABSOLUTE_ZERO = -459.67


def fahrenheit_to_celsius(fahrenheit: float) -> float:
    """Temperature in degrees Celsius, converted from Fahrenheit.

    Raises `ValueError` below absolute zero, -459.67 °F.
    """
    if fahrenheit < _ABSOLUTE_ZERO:
        raise ValueError(f'{fahrenheit} °F is below absolute zero, {_ABSOLUTE_ZERO} °F')
    return (fahrenheit - 32) * 5 / 9
