from tool import parse_duration


def _error(text: str) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        return str(error)
    return ''


def test_every_unit() -> None:
    seconds = [parse_duration(text) for text in ('1w', '1d', '1h', '1m', '1s')]
    assert seconds == [604800, 86400, 3600, 60, 1]


def test_every_unit_has_an_english_name() -> None:
    seconds = [parse_duration(text) for text in ('2 weeks', '1 day', '3 hours', '1 minute', '5 secs')]
    assert seconds == [1209600, 86400, 10800, 60, 5]


def test_several_units_are_added() -> None:
    assert parse_duration('1h 30m') == 5400
    assert parse_duration('1h30m15s') == 5415
    assert parse_duration('2 days, 3 hours and 4 minutes') == 183840


def test_fractions_are_possible() -> None:
    assert parse_duration('1.5 minutes') == 90
    assert parse_duration('.5h') == 1800


def test_case_and_spaces_do_not_matter() -> None:
    assert parse_duration('  1 H  2 Min ') == 3720


def test_zero_is_a_duration() -> None:
    assert parse_duration('0s') == 0


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    assert "'fortnights' is not a unit of time; use one of: w, d, h, m, s" in _error('2 fortnights')


def test_other_texts_are_refused() -> None:
    assert 'not a duration' in _error('about 5 minutes')
    assert 'not a duration' in _error('90')
    assert 'not a duration' in _error('-5m')
    assert 'no duration' in _error('')
