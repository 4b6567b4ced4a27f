"""Tables for people."""


def markdown_table(rows: list[dict]) -> str:
    """Markdown table of a list of dicts, with the keys as its header.

    The columns are the keys of all rows, in the order of their first appearance; a missing value and None are empty.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        return ''
    lines = [columns, ['---'] * len(columns), *([row.get(column) for column in columns] for row in rows)]
    return '\n'.join(f'| {" | ".join(map(_cell, line))} |' for line in lines)


def _cell(value: object) -> str:
    """The text of a value, on one line, without the sign that ends a cell."""
    text = '' if value is None else str(value)
    return '<br>'.join(text.replace('|', '\\|').splitlines())
