"""Payments of loans."""

import math


def loan_payment(principal: float, annual_percent: float, months: int) -> float:
    """Monthly payment of a loan or mortgage, paid back in equal parts (annuity) at a yearly interest rate in percent.

    The amount is not rounded. Raises `ValueError` for less than one month, and for a negative rate.
    """
    if months < 1:
        raise ValueError(f'a loan is paid back in at least 1 month, not {months}')
    if annual_percent < 0:
        raise ValueError(f'the interest rate cannot be negative: {annual_percent}')
    rate = annual_percent / 1200
    if rate == 0:
        return principal / months
    # 1 - (1 + rate) ** -months, exact for small rates too
    return principal * rate / -math.expm1(-months * math.log1p(rate))
