from tool import celsius_to_fahrenheit


def _error(celsius: float) -> str:
    try:
        celsius_to_fahrenheit(celsius)
    except ValueError as error:
        return str(error)
    return ''


def test_water_freezes_at_32_and_boils_at_212() -> None:
    assert celsius_to_fahrenheit(0) == 32
    assert celsius_to_fahrenheit(100) == 212


def test_both_scales_meet_at_minus_40() -> None:
    assert celsius_to_fahrenheit(-40) == -40


def test_fractions_are_kept() -> None:
    assert abs(celsius_to_fahrenheit(36.6) - 97.88) < 1e-9


def test_absolute_zero_is_a_temperature() -> None:
    assert abs(celsius_to_fahrenheit(-273.15) + 459.67) < 1e-9


def test_less_than_absolute_zero_is_refused() -> None:
    assert 'absolute zero' in _error(-273.16)
