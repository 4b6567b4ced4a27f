"""Percent of a number."""


def percent_of(percent: float, number: float) -> float:
    """Percent of a number: 15 percent of 80 is 12."""
    return number * percent / 100
