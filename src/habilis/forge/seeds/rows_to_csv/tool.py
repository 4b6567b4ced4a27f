"""CSV text of rows."""

import csv
import io


def rows_to_csv(rows: list[dict], delimiter: str = ',') -> str:
    """CSV text of a list of dicts, with the keys as its first line.

    The columns are the keys of all rows, in the order of their first appearance; a missing value and None are empty.
    Raises `ValueError` for a delimiter that is not one character.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    try:
        writer = csv.writer(text, delimiter=delimiter, lineterminator='\n')
    except TypeError as error:
        raise ValueError(f'{delimiter!r} cannot be the delimiter: {error}') from None
    if columns:
        writer.writerow(columns)
        writer.writerows([row.get(column) for column in columns] for row in rows)
    return text.getvalue()
