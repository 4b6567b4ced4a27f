import math

from tool import distance_on_earth


def _error(*degrees: float) -> str:
    try:
        distance_on_earth(*degrees)
    except ValueError as error:
        return str(error)
    return ''


def _about(value: float, expected: float) -> bool:
    return abs(value - expected) < 0.5


def test_cities() -> None:
    assert _about(distance_on_earth(52.5200, 13.4050, 48.8566, 2.3522), 877.5)  # Berlin, Paris
    assert _about(distance_on_earth(40.7128, -74.0060, -33.8688, 151.2093), 15988.8)  # New York, Sydney


def test_a_place_is_at_no_distance_from_itself() -> None:
    assert distance_on_earth(12.5, -70, 12.5, -70) == 0


def test_a_degree_of_the_equator() -> None:
    assert abs(distance_on_earth(0, 10, 0, 11) - 111.195) < 0.001


def test_the_way_back_is_as_long() -> None:
    assert abs(distance_on_earth(10, 20, -30, 40) - distance_on_earth(-30, 40, 10, 20)) < 1e-9


def test_the_shorter_way_over_the_date_line() -> None:
    assert abs(distance_on_earth(0, 179.5, 0, -179.5) - 111.195) < 0.001


def test_opposite_places_and_poles() -> None:
    half = math.pi * 6371.0088
    assert abs(distance_on_earth(90, 0, -90, 0) - half) < 1e-6
    assert abs(distance_on_earth(0, -180, 0, 0) - half) < 1e-6
    assert distance_on_earth(90, 180, 90, -180) < 1e-6


def test_very_near_places() -> None:
    assert abs(distance_on_earth(50, 8, 50.000001, 8) - 0.000111195) < 1e-8


def test_impossible_places_are_refused() -> None:
    assert 'latitude is between -90 and 90 degrees, not 90.5' in _error(90.5, 0, 0, 0)
    assert 'latitude' in _error(0, 0, -90.5, 0)
    assert 'longitude is between -180 and 180 degrees, not 180.5' in _error(0, 180.5, 0, 0)
    assert 'longitude' in _error(0, 0, 0, -180.5)
    assert 'latitude' in _error(math.nan, 0, 0, 0)
