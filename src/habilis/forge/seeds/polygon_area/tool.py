"""Areas of polygons."""

import math
from itertools import pairwise


def polygon_area(points: list[list[float]]) -> float:
    """Area of a polygon (triangle, rectangle, plot of land) from the x and y of its corners, in order.

    In either direction; the first corner need not be repeated. The sides must not cross. Raises `ValueError` for fewer
    than three corners, and for a corner that is not a pair.
    """
    if len(points) < 3:
        raise ValueError(f'a polygon has at least 3 corners, not {len(points)}')
    if any(len(point) != 2 for point in points):
        raise ValueError('a corner is a pair of numbers: [x, y]')
    left, bottom = points[0]
    # Seen from the first corner, so that large coordinates cost no precision.
    corners = [(x - left, y - bottom) for x, y in points]
    doubled = (x * next_y - next_x * y for (x, y), (next_x, next_y) in pairwise(corners))
    return abs(math.fsum(doubled)) / 2
