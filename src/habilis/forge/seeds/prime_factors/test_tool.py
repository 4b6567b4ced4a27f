from tool import prime_factors


def _error(number: int) -> str:
    try:
        prime_factors(number)
    except ValueError as error:
        return str(error)
    return ''


def test_factors_are_repeated_and_ordered() -> None:
    assert prime_factors(60) == [2, 2, 3, 5]
    assert prime_factors(97 * 2 * 31) == [2, 31, 97]


def test_a_prime_number_is_its_own_factor() -> None:
    for prime in (2, 3, 5, 7, 11, 97, 7919):
        assert prime_factors(prime) == [prime]


def test_squares_of_prime_numbers() -> None:
    for prime in (2, 3, 5, 7, 11, 13):
        assert prime_factors(prime * prime) == [prime, prime]


def test_one_has_no_factors() -> None:
    assert prime_factors(1) == []


def test_large_numbers_are_exact() -> None:
    assert prime_factors(3**60) == [3] * 60
    assert prime_factors(2**70 * 5) == [2] * 70 + [5]
    assert prime_factors(10**10 + 19) == [10**10 + 19]
    assert prime_factors(600851475143) == [71, 839, 1471, 6857]


def test_zero_and_negative_numbers_are_refused() -> None:
    assert 'positive' in _error(0)
    assert 'not -6' in _error(-6)
