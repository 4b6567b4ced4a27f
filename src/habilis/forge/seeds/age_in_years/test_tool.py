from tool import age_in_years


def _error(birth_date: str, on_date: str) -> str:
    try:
        age_in_years(birth_date, on_date)
    except ValueError as error:
        return str(error)
    return ''


def test_the_age_grows_on_the_birthday() -> None:
    assert age_in_years('1990-06-15', '2024-06-14') == 33
    assert age_in_years('1990-06-15', '2024-06-15') == 34
    assert age_in_years('1990-06-15', '2024-06-16') == 34


def test_the_month_counts_before_the_day() -> None:
    assert age_in_years('1990-06-15', '2024-05-20') == 33
    assert age_in_years('1990-06-15', '2024-07-01') == 34


def test_a_newborn_is_zero() -> None:
    assert age_in_years('2024-02-01', '2024-02-01') == 0
    assert age_in_years('2023-12-31', '2024-01-01') == 0


def test_a_leap_day_birthday_is_on_the_first_of_march_in_other_years() -> None:
    assert age_in_years('2000-02-29', '2023-02-28') == 22
    assert age_in_years('2000-02-29', '2023-03-01') == 23
    assert age_in_years('2000-02-29', ' 2024-02-29 ') == 24


def test_a_date_before_the_birth_is_refused() -> None:
    assert 'before the birth' in _error('2024-02-02', '2024-02-01')


def test_a_text_that_is_not_a_date_is_refused() -> None:
    assert "'2023-02-29' is not a date" in _error('2023-02-29', '2024-01-01')
    assert "'today' is not a date" in _error('2000-01-01', 'today')
