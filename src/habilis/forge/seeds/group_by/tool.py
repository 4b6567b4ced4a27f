"""Groups of rows."""


def group_by(rows: list[dict], key: str) -> dict:
    """Rows (dicts) grouped by the value that they have at a key: each value with the list of its rows.

    Groups are in the order of their first row. Raises `ValueError` for a row without the key, and for a value that
    cannot be a key of a dict, like a list.
    """
    groups = {}
    for number, row in enumerate(rows, start=1):
        if key not in row:
            raise ValueError(f'row {number} has no {key!r}; its keys are {list(row)}')
        try:
            groups.setdefault(row[key], []).append(row)
        except TypeError:
            raise ValueError(f'row {number} has {row[key]!r} at {key!r}, which cannot name a group') from None
    return groups
