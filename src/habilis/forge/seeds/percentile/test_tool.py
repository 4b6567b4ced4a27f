from tool import percentile


def _error(numbers: list[float], percent: float) -> str:
    try:
        percentile(numbers, percent)
    except ValueError as error:
        return str(error)
    return ''


def test_the_middle_is_the_median() -> None:
    assert percentile([9, 1, 5], 50) == 5
    assert percentile([1, 2, 3, 10], 50) == 2.5


def test_the_ends_are_the_least_and_the_greatest() -> None:
    assert percentile([3, 1, 2], 0) == 1
    assert percentile([3, 1, 2], 100) == 3


def test_between_two_numbers_it_is_interpolated() -> None:
    assert percentile([10, 20, 30, 40], 25) == 17.5
    assert percentile([15, 20, 35, 40, 50], 40) == 29


def test_one_number_is_every_percentile() -> None:
    assert percentile([7], 0) == percentile([7], 33) == percentile([7], 100) == 7


def test_negative_numbers() -> None:
    assert percentile([-10, 0], 10) == -9


def test_infinity_is_a_number() -> None:
    infinity = float('inf')
    assert percentile([1, infinity, infinity], 75) == infinity


def test_the_list_is_not_changed() -> None:
    numbers = [2.0, 1.0]
    assert percentile(numbers, 50) == 1.5
    assert numbers == [2.0, 1.0]


def test_an_empty_list_and_nan_are_refused() -> None:
    assert 'at least one number' in _error([], 50)
    assert 'no NaN' in _error([1, float('nan')], 50)


def test_a_percent_beyond_0_to_100_is_refused() -> None:
    assert 'between 0 and 100, not 101' in _error([1, 2], 101)
    assert 'between 0 and 100' in _error([1, 2], -0.5)
