"""Growth of savings."""


def compound_interest(
    principal: float, annual_percent: float, years: float, times_per_year: int = 1
) -> dict[str, float]:
    """Compound interest on savings or a debt: the final `balance`, and the `interest` in it.

    `times_per_year`: how often the interest is added; 12 is monthly. The amounts are not rounded. Raises `ValueError`
    for negative years, for fewer than one time per year, and for a loss of more than everything.
    """
    if years < 0:
        raise ValueError(f'the number of years cannot be negative: {years}')
    if times_per_year < 1:
        raise ValueError(f'interest is added at least once per year, not {times_per_year} times')
    factor = 1 + annual_percent / 100 / times_per_year
    if factor < 0:
        raise ValueError(f'{annual_percent} percent is a loss of more than everything')
    balance = principal * factor ** (years * times_per_year)
    return {'balance': balance, 'interest': balance - principal}
