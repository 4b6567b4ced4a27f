from tool import linear_regression


def _error(xs: list[float], ys: list[float]) -> str:
    try:
        linear_regression(xs, ys)
    except ValueError as error:
        return str(error)
    return ''


def _about(result: dict[str, float], slope: float, intercept: float, r_squared: float) -> bool:
    expected = {'slope': slope, 'intercept': intercept, 'r_squared': r_squared}
    return result.keys() == expected.keys() and all(abs(result[key] - expected[key]) < 1e-9 for key in expected)


def test_points_on_a_line() -> None:
    assert _about(linear_regression([1, 2, 4], [5, 7, 11]), 2, 3, 1)


def test_points_beside_a_line() -> None:
    assert _about(linear_regression([1, 2, 3, 4, 5], [2, 4, 5, 4, 5]), 0.6, 2.2, 0.6)


def test_a_falling_line() -> None:
    assert _about(linear_regression([-1, 0, 1], [1, 0, -1]), -1, 0, 1)


def test_a_level_line() -> None:
    assert _about(linear_regression([1, 2, 3], [4, 4, 4]), 0, 4, 1)


def test_points_without_a_trend() -> None:
    assert _about(linear_regression([1, 2, 3, 4], [1, 2, 2, 1]), 0, 1.5, 0)


def test_two_points_are_enough() -> None:
    assert _about(linear_regression([0, 10], [1, 6]), 0.5, 1, 1)


def test_years_cost_no_precision() -> None:
    years = [2000.0 + number for number in range(20)]
    result = linear_regression(years, [0.1 * year - 100 for year in years])
    assert abs(result['slope'] - 0.1) < 1e-9
    assert abs(result['intercept'] + 100) < 1e-6


def test_lists_of_different_length_are_refused() -> None:
    assert 'different lengths: 2 and 3' in _error([1, 2], [1, 2, 3])


def test_points_that_make_no_line_are_refused() -> None:
    assert 'at least two points' in _error([1], [1])
    assert 'at least two points' in _error([], [])
    assert 'different x' in _error([3, 3], [1, 2])
