from tool import polygon_area


def _error(points: list[list[float]]) -> str:
    try:
        polygon_area(points)
    except ValueError as error:
        return str(error)
    return ''


def test_a_rectangle() -> None:
    assert polygon_area([[1, 1], [4, 1], [4, 3], [1, 3]]) == 6


def test_a_triangle() -> None:
    assert polygon_area([[1, 2], [6, 2], [3, 5]]) == 7.5


def test_the_direction_does_not_matter() -> None:
    assert polygon_area([[1, 3], [4, 3], [4, 1], [1, 1]]) == 6


def test_the_first_corner_may_be_repeated() -> None:
    assert polygon_area([[0, 0], [5, 0], [2, 3], [0, 0]]) == 7.5


def test_a_shape_with_a_dent() -> None:
    assert polygon_area([[0, 0], [4, 0], [4, 4], [2, 1], [0, 4]]) == 10


def test_negative_coordinates() -> None:
    assert polygon_area([[-1, -2], [1, -2], [1, 2], [-1, 2]]) == 8


def test_corners_on_a_line_have_no_area() -> None:
    assert polygon_area([[0, 0], [1, 1], [2, 2]]) == 0


def test_large_coordinates_cost_no_precision() -> None:
    assert polygon_area([[1e9, 1e9], [1e9 + 0.5, 1e9], [1e9 + 0.5, 1e9 + 0.5], [1e9, 1e9 + 0.5]]) == 0.25


def test_too_few_corners_are_refused() -> None:
    assert 'at least 3 corners, not 2' in _error([[0, 0], [1, 1]])
    assert 'at least 3 corners' in _error([])


def test_a_corner_that_is_not_a_pair_is_refused() -> None:
    assert 'a pair of numbers' in _error([[0, 0], [1, 1], [2, 2, 2]])
