from tool import format_duration


def _error(seconds: float) -> str:
    try:
        format_duration(seconds)
    except ValueError as error:
        return str(error)
    return ''


def test_hours_minutes_and_seconds() -> None:
    assert format_duration(3723) == '1 hour 2 minutes 3 seconds'


def test_one_is_singular() -> None:
    assert format_duration(90061) == '1 day 1 hour 1 minute 1 second'


def test_units_of_zero_are_left_out() -> None:
    assert format_duration(7200) == '2 hours'
    assert format_duration(86_405) == '1 day 5 seconds'


def test_zero_seconds() -> None:
    assert format_duration(0) == '0 seconds'
    assert format_duration(-0.0001) == '0 seconds'


def test_fractions_are_rounded_to_milliseconds() -> None:
    assert format_duration(1.5) == '1.5 seconds'
    assert format_duration(0.0004) == '0 seconds'
    assert format_duration(59.9996) == '1 minute'
    assert format_duration(59.999) == '59.999 seconds'


def test_many_days_are_written_out() -> None:
    assert format_duration(86_400 * 12_345_678) == '12345678 days'


def test_negative_durations_have_a_minus() -> None:
    assert format_duration(-61) == '-1 minute 1 second'


def test_infinity_and_nan_are_refused() -> None:
    assert 'not a duration' in _error(float('inf'))
    assert 'not a duration' in _error(float('nan'))
