from tool import part_as_percent


def _error(part: float, whole: float) -> str:
    try:
        part_as_percent(part, whole)
    except ValueError as error:
        return str(error)
    return ''


def test_a_part_of_a_whole() -> None:
    assert part_as_percent(12, 80) == 15
    assert part_as_percent(7, 100) == 7


def test_a_part_may_be_larger_than_the_whole() -> None:
    assert part_as_percent(30, 20) == 150


def test_no_part_is_zero_percent() -> None:
    assert part_as_percent(0, 9) == 0


def test_negative_numbers() -> None:
    assert part_as_percent(-1, 4) == -25
    assert part_as_percent(-1, -4) == 25


def test_a_whole_of_zero_is_refused() -> None:
    assert 'zero' in _error(3, 0)
    assert 'zero' in _error(0, 0.0)
