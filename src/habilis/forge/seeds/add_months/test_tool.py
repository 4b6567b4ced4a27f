from tool import add_months


def _error(day: str, months: int) -> str:
    try:
        add_months(day, months)
    except ValueError as error:
        return str(error)
    return ''


def test_some_months_later() -> None:
    assert add_months('2024-01-15', 1) == '2024-02-15'
    assert add_months('2024-03-05', 8) == '2024-11-05'


def test_the_year_changes_after_december() -> None:
    assert add_months('2024-11-30', 1) == '2024-12-30'
    assert add_months('2024-12-30', 1) == '2025-01-30'
    assert add_months('2024-05-01', 30) == '2026-11-01'


def test_negative_months_go_back() -> None:
    assert add_months('2024-01-15', -1) == '2023-12-15'
    assert add_months('2024-03-31', -13) == '2023-02-28'


def test_no_months_is_the_same_day() -> None:
    assert add_months(' 2024-02-29 ', 0) == '2024-02-29'


def test_a_day_that_the_month_does_not_have_becomes_its_last() -> None:
    assert add_months('2024-01-31', 1) == '2024-02-29'
    assert add_months('2023-01-31', 1) == '2023-02-28'
    assert add_months('2024-05-31', 1) == '2024-06-30'


def test_the_first_and_the_last_year_are_possible() -> None:
    assert add_months('0001-02-01', -1) == '0001-01-01'
    assert add_months('9999-11-30', 1) == '9999-12-30'
    assert '1 to 9999' in _error('0001-01-01', -1)
    assert '1 to 9999' in _error('9999-12-31', 1)


def test_a_text_that_is_not_a_date_is_refused() -> None:
    assert "'2024-13-01' is not a date" in _error('2024-13-01', 1)
