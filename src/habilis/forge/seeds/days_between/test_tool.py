from tool import days_between


def _error(start: str, end: str) -> str:
    try:
        days_between(start, end)
    except ValueError as error:
        return str(error)
    return ''


def test_the_next_day_is_one_day_away() -> None:
    assert days_between('2023-12-31', '2024-01-01') == 1


def test_the_same_day_is_zero_days_away() -> None:
    assert days_between('2024-05-05', '2024-05-05') == 0


def test_an_end_before_the_start_is_negative() -> None:
    assert days_between('2024-01-10', '2024-01-01') == -9


def test_leap_years_have_a_day_more() -> None:
    assert days_between('2024-01-01', '2025-01-01') == 366
    assert days_between('2023-01-01', '2024-01-01') == 365
    assert days_between('1900-02-28', '1900-03-01') == 1


def test_spaces_around_a_date_do_not_matter() -> None:
    assert days_between(' 2024-01-01', '2024-01-03\n') == 2


def test_a_day_that_does_not_exist_is_refused() -> None:
    assert "'2023-02-29' is not a date" in _error('2023-02-29', '2024-01-01')
    assert "'tomorrow' is not a date" in _error('2024-01-01', 'tomorrow')
