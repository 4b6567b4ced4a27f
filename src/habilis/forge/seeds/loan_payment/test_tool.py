from tool import loan_payment


def _error(percent: float, months: int) -> str:
    try:
        loan_payment(1000, percent, months)
    except ValueError as error:
        return str(error)
    return ''


def test_a_mortgage_of_thirty_years() -> None:
    assert round(loan_payment(200_000, 6, 360), 2) == 1199.10


def test_a_loan_of_one_month_is_paid_back_with_its_interest() -> None:
    assert round(loan_payment(1200, 12, 1), 9) == 1212


def test_a_loan_without_interest_is_divided() -> None:
    assert loan_payment(1200, 0, 12) == 100


def test_a_tiny_rate_is_almost_none() -> None:
    assert abs(loan_payment(1200, 1e-12, 12) - 100) < 1e-6


def test_the_payments_bring_the_debt_to_zero() -> None:
    payment, debt = loan_payment(10_000, 7.5, 48), 10_000.0
    for _ in range(48):
        debt = debt * (1 + 0.075 / 12) - payment
    assert abs(debt) < 1e-6


def test_impossible_terms_are_refused() -> None:
    assert 'at least 1 month' in _error(5, 0)
    assert 'at least 1 month' in _error(5, -12)
    assert 'cannot be negative' in _error(-0.5, 12)
