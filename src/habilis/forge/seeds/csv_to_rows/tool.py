"""Rows of CSV text."""

import csv
import io


def csv_to_rows(text: str, delimiter: str = ',') -> list[dict[str, str]]:
    """Rows of CSV text as dicts, with the names of the first line as keys.

    All values are text; those missing at the end of a line are empty, and empty lines are skipped. Raises `ValueError`
    for a column name that occurs twice, for a line with more values than names, and for wrong quotes.
    """
    try:
        lines = list(csv.reader(io.StringIO(text.removeprefix('\ufeff'), newline=''), delimiter=delimiter, strict=True))
    except (csv.Error, TypeError) as error:
        raise ValueError(f'the text is not CSV: {error}') from None
    filled = [line for line in lines if line]
    if not filled:
        return []
    names, *records = filled
    if len(set(names)) < len(names):
        raise ValueError(f'a column name occurs twice: {names}')
    return [_row(names, record) for record in records]


def _row(names: list[str], values: list[str]) -> dict[str, str]:
    missing = len(names) - len(values)
    if missing < 0:
        raise ValueError(f'a line has {len(values)} values for {len(names)} columns: {values}')
    return dict(zip(names, values + [''] * missing, strict=True))
