from tool import correlation


def _error(xs: list[float], ys: list[float]) -> str:
    try:
        correlation(xs, ys)
    except ValueError as error:
        return str(error)
    return ''


def test_numbers_that_rise_together() -> None:
    assert abs(correlation([1, 2, 3], [10, 20, 30]) - 1) < 1e-12


def test_numbers_of_which_one_falls() -> None:
    assert abs(correlation([1, 2, 3], [-5, -6, -7]) + 1) < 1e-12


def test_numbers_that_have_nothing_to_do_with_each_other() -> None:
    assert abs(correlation([1, 2, 3, 4], [1, 2, 2, 1])) < 1e-12


def test_numbers_in_between() -> None:
    assert abs(correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) - 0.8) < 1e-12


def test_the_order_of_the_lists_does_not_matter() -> None:
    assert correlation([1, 5, 2], [3, 3, 9]) == correlation([3, 3, 9], [1, 5, 2])


def test_rounding_never_leads_beyond_one() -> None:
    for size in range(2, 60):
        xs = [number / 7 for number in range(size)]
        ys = [number * 0.3 + 0.1 for number in range(size)]
        assert 0.999999 < correlation(xs, ys) <= 1
        assert -1 <= correlation(xs, [-y for y in ys]) < -0.999999


def test_lists_of_different_length_are_refused() -> None:
    assert 'different lengths: 2 and 3' in _error([1, 2], [1, 2, 3])


def test_fewer_than_two_numbers_are_refused() -> None:
    assert 'at least two' in _error([1], [1])
    assert 'at least two' in _error([], [])


def test_numbers_that_are_all_equal_are_refused() -> None:
    assert 'all numbers are 3' in _error([1, 2], [3, 3])
    assert 'all numbers are 0.1' in _error([0.1, 0.1, 0.1], [1, 2, 3])
