"""Correlation of numbers."""

import math


def correlation(xs: list[float], ys: list[float]) -> float:
    """Correlation of two lists of numbers (Pearson's r): 1 if they rise together, -1 if one falls, 0 if neither.

    Raises `ValueError` for lists of different length, for fewer than two numbers, and for numbers that are all equal.
    """
    if len(xs) != len(ys):
        raise ValueError(f'the lists have different lengths: {len(xs)} and {len(ys)}')
    if len(xs) < 2:
        raise ValueError('a correlation needs at least two numbers in each list')
    dx, dy = _deviations(xs), _deviations(ys)
    together = math.fsum(x * y for x, y in zip(dx, dy, strict=True))
    return max(-1.0, min(1.0, together / (math.hypot(*dx) * math.hypot(*dy))))


def _deviations(numbers: list[float]) -> list[float]:
    if min(numbers) == max(numbers):
        raise ValueError(f'all numbers are {numbers[0]}, so nothing correlates with them')
    mean = math.fsum(numbers) / len(numbers)
    return [number - mean for number in numbers]
