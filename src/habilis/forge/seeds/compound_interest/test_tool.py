from tool import compound_interest


def _error(percent: float, years: float, times: int) -> str:
    try:
        compound_interest(1000, percent, years, times)
    except ValueError as error:
        return str(error)
    return ''


def _about(value: float, expected: float) -> bool:
    return abs(value - expected) < 0.005


def test_interest_is_paid_on_interest() -> None:
    result = compound_interest(1000, 10, 2)
    assert _about(result['balance'], 1210)
    assert _about(result['interest'], 210)


def test_interest_may_be_added_every_month() -> None:
    assert _about(compound_interest(1000, 5, 10, 12)['balance'], 1647.01)


def test_part_of_a_year() -> None:
    assert _about(compound_interest(1000, 21, 0.5)['balance'], 1100)


def test_no_time_and_no_rate_bring_no_interest() -> None:
    assert compound_interest(500, 5, 0) == {'balance': 500, 'interest': 0}
    assert compound_interest(500, 0, 7) == {'balance': 500, 'interest': 0}


def test_a_negative_rate_is_a_loss() -> None:
    assert _about(compound_interest(1000, -10, 1)['interest'], -100)
    assert compound_interest(1000, -100, 1)['balance'] == 0


def test_impossible_terms_are_refused() -> None:
    assert 'cannot be negative' in _error(5, -1, 1)
    assert 'at least once' in _error(5, 1, 0)
    assert 'more than everything' in _error(-101, 1, 1)
