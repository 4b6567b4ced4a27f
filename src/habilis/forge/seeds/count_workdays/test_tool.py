from tool import count_workdays

# 2024-01-01 is a Monday.


def _error(start: str, end: str, holidays: list[str] | None = None) -> str:
    try:
        count_workdays(start, end, holidays)
    except ValueError as error:
        return str(error)
    return ''


def test_both_ends_count() -> None:
    assert count_workdays('2024-01-01', '2024-01-01') == 1
    assert count_workdays('2024-01-01', '2024-01-05') == 5


def test_weekends_do_not_count() -> None:
    assert count_workdays('2024-01-06', '2024-01-07') == 0
    assert count_workdays('2024-01-05', '2024-01-08') == 2
    assert count_workdays('2024-01-01', '2024-01-07') == 5


def test_whole_weeks_and_the_days_after_them() -> None:
    assert count_workdays('2024-01-03', '2024-01-31') == 21
    assert count_workdays('2024-01-01', '2024-12-31') == 262


def test_holidays_do_not_count() -> None:
    assert count_workdays('2024-01-01', '2024-01-05', ['2024-01-01', '2024-01-05']) == 3


def test_a_holiday_counts_once_and_only_on_a_workday_of_the_period() -> None:
    assert count_workdays('2024-01-02', '2024-01-12', ['2024-01-03', ' 2024-01-03']) == 8
    assert count_workdays('2024-01-02', '2024-01-12', ['2024-01-06', '2024-01-01', '2024-01-15']) == 9


def test_an_end_before_the_start_is_refused() -> None:
    assert 'before the start' in _error('2024-01-02', '2024-01-01')


def test_a_text_that_is_not_a_date_is_refused() -> None:
    assert "'soon' is not a date" in _error('2024-01-01', 'soon')
    assert "'Christmas' is not a date" in _error('2024-01-01', '2024-01-02', ['Christmas'])
