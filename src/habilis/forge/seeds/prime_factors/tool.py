"""Prime factors of numbers."""

from itertools import chain, count


def prime_factors(number: int) -> list[int]:
    """Prime factors of a whole number, the smallest first: 60 is 2 × 2 × 3 × 5.

    A prime number has itself as its only factor, and 1 has none. Fast as long as the second largest factor has no more
    than about seven digits. Raises `ValueError` for zero and negative numbers.
    """
    if number < 1:
        raise ValueError(f'only positive whole numbers have prime factors, not {number}')
    factors, left = list[int](), number
    for divisor in chain([2], count(3, 2)):
        if divisor * divisor > left:
            break
        while left % divisor == 0:
            factors.append(divisor)
            left //= divisor
    return [*factors, left] if left > 1 else factors
