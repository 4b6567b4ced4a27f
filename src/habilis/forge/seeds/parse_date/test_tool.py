from tool import parse_date


def _error(text: str, day_first: bool | None = None) -> str:
    try:
        parse_date(text, day_first)
    except ValueError as error:
        return str(error)
    return ''


def test_the_year_first() -> None:
    assert parse_date('2024-03-05') == '2024-03-05'
    assert parse_date('2024/3/5') == '2024-03-05'


def test_month_names() -> None:
    assert parse_date('5 March 2024') == '2024-03-05'
    assert parse_date('March 5, 2024') == '2024-03-05'
    assert parse_date('March 5,2024') == '2024-03-05'
    assert parse_date('21st of Sept. 2024') == '2024-09-21'
    assert parse_date('Dec 31st, 1999') == '1999-12-31'
    assert parse_date('1. may 2024') == '2024-05-01'


def test_every_month_has_its_number() -> None:
    months = 'Jan Feb Mar Apr May June July August September October November December'.split()
    dates = [parse_date(f'7 {month} 2023') for month in months]
    assert dates == [f'2023-{number:02}-07' for number in range(1, 13)]


def test_a_weekday_is_skipped() -> None:
    assert parse_date('Tuesday, 5 March 2024') == '2024-03-05'
    assert parse_date('  Tue.  Mar 5 2024 ') == '2024-03-05'


def test_dots_mean_the_day_first() -> None:
    assert parse_date('5.3.2024') == '2024-03-05'
    assert parse_date('05.03.2024', day_first=False) == '2024-03-05'


def test_day_first_says_what_slashes_mean() -> None:
    assert parse_date('03/05/2024', day_first=True) == '2024-05-03'
    assert parse_date('03/05/2024', day_first=False) == '2024-03-05'


def test_slashes_with_one_meaning_need_no_hint() -> None:
    assert parse_date('25/12/2024') == '2024-12-25'
    assert parse_date('12/25/2024') == '2024-12-25'
    assert parse_date('13-12-2024') == '2024-12-13'
    assert parse_date('12-13-2024') == '2024-12-13'
    assert parse_date('4/4/2024') == '2024-04-04'


def test_ambiguous_dates_are_refused() -> None:
    assert 'ambiguous' in _error('03/05/2024')
    assert 'ambiguous' in _error('12/11/2024')
    assert 'ambiguous' in _error('11/12/2024')


def test_days_that_do_not_exist_are_refused() -> None:
    assert "'2023-02-29' is not a date" in _error('2023-02-29')
    assert 'not a date' in _error('25/12/2024', day_first=False)
    assert "'maybe' is not the English name of a month" in _error('5 maybe 2024')


def test_other_texts_are_refused_with_an_example() -> None:
    assert '5 March 2024' in _error('tomorrow')
    assert '5 March 2024' in _error('5/3-2024')
    assert '5 March 2024' in _error('')
