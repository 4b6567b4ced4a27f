"""Share of a total in percent."""


def part_as_percent(part: float, whole: float) -> float:
    """What percent a part is of the whole (share, percentage of a total): 12 of 80 is 15 percent.

    Raises `ValueError` if the whole is zero.
    """
    if whole == 0:
        raise ValueError('the whole is zero, so no part is a percentage of it')
    return 100 * part / whole
