"""Summary of numbers."""

import math
from collections import Counter


def describe_numbers(numbers: list[float]) -> dict[str, float | list[float]]:
    """Statistics of a list of numbers: count, sum, mean (average), median, modes, min, max and standard deviation.

    `modes` are the most frequent numbers. `standard_deviation` is that of a sample (n - 1), and 0 for one number.
    Raises `ValueError` for an empty list, infinity and NaN.
    """
    if not numbers:
        raise ValueError('there are no numbers to describe')
    if not all(map(math.isfinite, numbers)):
        raise ValueError('infinity and NaN have no statistics')
    count, ordered = len(numbers), sorted(numbers)
    total = math.fsum(ordered)
    mean = total / count
    squares = math.fsum((number - mean) ** 2 for number in ordered)
    return {
        'count': count,
        'sum': total,
        'mean': mean,
        'median': (ordered[count // 2] + ordered[(count - 1) // 2]) / 2,
        'modes': _modes(ordered),
        'min': ordered[0],
        'max': ordered[-1],
        'standard_deviation': math.sqrt(squares / (count - 1)) if count > 1 else 0.0,
    }


def _modes(ordered: list[float]) -> list[float]:
    counts = Counter(ordered)
    most = max(counts.values())
    return [number for number, count in counts.items() if count == most]
