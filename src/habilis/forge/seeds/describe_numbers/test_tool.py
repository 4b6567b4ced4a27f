from tool import describe_numbers


def _error(numbers: list[float]) -> str:
    try:
        describe_numbers(numbers)
    except ValueError as error:
        return str(error)
    return ''


def test_all_statistics_of_some_numbers() -> None:
    assert describe_numbers([2, 4, 4, 4, 5, 5, 7, 9, 14]) == {
        'count': 9,
        'sum': 54,
        'mean': 6,
        'median': 5,
        'modes': [4],
        'min': 2,
        'max': 14,
        'standard_deviation': 13**0.5,
    }


def test_the_order_does_not_matter() -> None:
    assert describe_numbers([3, 1, 2]) == describe_numbers([1, 2, 3])


def test_the_median_of_an_even_count_is_between_the_two_in_the_middle() -> None:
    assert describe_numbers([1, 2, 4, 100])['median'] == 3


def test_all_of_the_most_frequent_are_modes() -> None:
    assert describe_numbers([3, 1, 3, 1, 2])['modes'] == [1, 3]


def test_one_number_does_not_deviate() -> None:
    one = describe_numbers([5])
    assert one['standard_deviation'] == 0
    assert one['median'] == one['mean'] == one['min'] == one['max'] == 5


def test_two_numbers_deviate() -> None:
    assert abs(describe_numbers([1, 3])['standard_deviation'] - 2**0.5) < 1e-12


def test_negative_numbers_and_fractions_are_added_exactly() -> None:
    assert describe_numbers([0.1] * 10)['sum'] == 1
    assert describe_numbers([-1.5, 1.5])['mean'] == 0


def test_an_empty_list_is_refused() -> None:
    assert 'no numbers' in _error([])


def test_infinity_and_nan_are_refused() -> None:
    assert 'NaN' in _error([1, float('nan')])
    assert 'infinity' in _error([float('inf')])
