"""Growth or decline in percent."""


def percent_change(old: float, new: float) -> float:
    """Percent change from an old to a new value: the growth, increase or decrease in percent.

    From 80 to 100 is 25, from 100 to 80 is -20. From a negative value the change is relative to its size, so that a
    rise is always positive. Raises `ValueError` if the old value is zero.
    """
    if old == 0:
        raise ValueError('the old value is zero, so a change from it has no percentage')
    return 100 * (new - old) / abs(old)
