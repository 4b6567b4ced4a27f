"""Percentiles of numbers."""

import math


def percentile(numbers: list[float], percent: float) -> float:
    """Percentile (quantile) of a list of numbers: the value below which that percent of them lie; 50 is the median.

    Between two numbers it is interpolated, as spreadsheets do. Raises `ValueError` for an empty list, for NaN, and for
    a percent that is not between 0 and 100.
    """
    if not numbers or any(map(math.isnan, numbers)):
        raise ValueError('a percentile needs at least one number, and no NaN')
    if not 0 <= percent <= 100:
        raise ValueError(f'the percent is between 0 and 100, not {percent}')
    ordered = sorted(numbers)
    place = (len(ordered) - 1) * percent / 100
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low if low == high else low + (high - low) * (place - math.floor(place))
