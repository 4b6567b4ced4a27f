"""Straight lines through points."""

import math


def linear_regression(xs: list[float], ys: list[float]) -> dict[str, float]:
    """Line of best fit through points (trend, least squares): its `slope`, `intercept` and `r_squared`.

    `r_squared` is 1 where the line goes through all points. Raises `ValueError` for lists of different length, for
    fewer than two points, and for points that all have the same x.
    """
    if len(xs) != len(ys):
        raise ValueError(f'the lists have different lengths: {len(xs)} and {len(ys)}')
    if len(xs) < 2 or min(xs) == max(xs):
        raise ValueError('a line needs at least two points with different x')
    x_mean, y_mean = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    points = [(x - x_mean, y - y_mean) for x, y in zip(xs, ys, strict=True)]
    slope = math.fsum(x * y for x, y in points) / math.fsum(x * x for x, _ in points)
    missed = math.fsum((y - slope * x) ** 2 for x, y in points)
    spread = math.fsum(y * y for _, y in points)
    return {
        'slope': slope,
        'intercept': y_mean - slope * x_mean,
        'r_squared': 1 - missed / spread if spread else 1.0,
    }
