from tool import fahrenheit_to_celsius


def _error(fahrenheit: float) -> str:
    try:
        fahrenheit_to_celsius(fahrenheit)
    except ValueError as error:
        return str(error)
    return ''


def test_water_freezes_at_0_and_boils_at_100() -> None:
    assert fahrenheit_to_celsius(32) == 0
    assert fahrenheit_to_celsius(212) == 100


def test_both_scales_meet_at_minus_40() -> None:
    assert fahrenheit_to_celsius(-40) == -40


def test_fractions_are_kept() -> None:
    assert abs(fahrenheit_to_celsius(97.88) - 36.6) < 1e-9


def test_absolute_zero_is_a_temperature() -> None:
    assert abs(fahrenheit_to_celsius(-459.67) + 273.15) < 1e-9


def test_less_than_absolute_zero_is_refused() -> None:
    assert 'absolute zero' in _error(-459.68)
