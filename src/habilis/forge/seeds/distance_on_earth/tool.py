"""Distances between places."""

import math

_RADIUS = 6371.0088


def distance_on_earth(latitude1: float, longitude1: float, latitude2: float, longitude2: float) -> float:
    """Distance in kilometers between two places on Earth by latitude and longitude (haversine, great circle).

    All four in degrees; south and west are negative. Good to about half a percent, since the Earth is not quite a
    sphere. Raises `ValueError` for a latitude beyond ±90 or a longitude beyond ±180.
    """
    for latitude in (latitude1, latitude2):
        if not -90 <= latitude <= 90:
            raise ValueError(f'a latitude is between -90 and 90 degrees, not {latitude}')
    for longitude in (longitude1, longitude2):
        if not -180 <= longitude <= 180:
            raise ValueError(f'a longitude is between -180 and 180 degrees, not {longitude}')
    return _RADIUS * _angle(math.radians(latitude1), math.radians(latitude2), math.radians(longitude2 - longitude1))


def _angle(here: float, there: float, turn: float) -> float:
    """Angle between two places, seen from the center; exact for near and for opposite places."""
    across = math.cos(there) * math.sin(turn)
    up = math.cos(here) * math.sin(there) - math.sin(here) * math.cos(there) * math.cos(turn)
    along = math.sin(here) * math.sin(there) + math.cos(here) * math.cos(there) * math.cos(turn)
    return math.atan2(math.hypot(across, up), along)
