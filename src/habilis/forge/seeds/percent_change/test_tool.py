from tool import percent_change


def _error(old: float, new: float) -> str:
    try:
        percent_change(old, new)
    except ValueError as error:
        return str(error)
    return ''


def test_an_increase_is_positive() -> None:
    assert percent_change(80, 100) == 25


def test_a_decrease_is_negative() -> None:
    assert percent_change(100, 80) == -20


def test_the_same_value_is_no_change() -> None:
    assert percent_change(7, 7) == 0


def test_down_to_zero_is_minus_a_hundred() -> None:
    assert percent_change(5, 0) == -100


def test_a_rise_from_a_negative_value_is_positive() -> None:
    assert percent_change(-50, -25) == 50
    assert percent_change(-50, 50) == 200


def test_a_change_from_zero_is_refused() -> None:
    assert 'zero' in _error(0, 5)
