from tool import percent_of


def test_percent_of_a_number() -> None:
    assert percent_of(15, 80) == 12
    assert percent_of(7, 100) == 7


def test_more_than_a_hundred_percent() -> None:
    assert percent_of(250, 4) == 10


def test_zero_percent_and_percent_of_zero() -> None:
    assert percent_of(0, 80) == 0
    assert percent_of(15, 0) == 0


def test_negative_numbers() -> None:
    assert percent_of(-50, 8) == -4
    assert percent_of(50, -8) == -4


def test_fractions_of_a_percent() -> None:
    assert percent_of(0.5, 1000) == 5
