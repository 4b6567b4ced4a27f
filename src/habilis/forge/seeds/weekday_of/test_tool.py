from tool import weekday_of


def _error(day: str) -> str:
    try:
        weekday_of(day)
    except ValueError as error:
        return str(error)
    return ''


def test_a_week_has_seven_names() -> None:
    days = [weekday_of(f'2024-01-0{day}') for day in range(1, 8)]
    assert days == ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']


def test_a_leap_day() -> None:
    assert weekday_of('2024-02-29') == 'Thursday'


def test_days_long_ago() -> None:
    assert weekday_of('1969-07-20') == 'Sunday'
    assert weekday_of('0001-01-01') == 'Monday'


def test_spaces_around_the_date_do_not_matter() -> None:
    assert weekday_of(' 2024-01-02 ') == 'Tuesday'


def test_a_day_that_does_not_exist_is_refused() -> None:
    assert "'2023-02-29' is not a date" in _error('2023-02-29')
    assert "'' is not a date" in _error('')
