"""What the frameworks show of a cell."""

from habilis.sandbox.contract import Cell


def printed_by(cell: Cell) -> str:
    """All output of the code."""
    return cell.stdout + cell.stderr


def result_of(cell: Cell) -> object:
    """The value of the last expression; its `repr` if it is not plain data."""
    return cell.text if cell.value is None else cell.value


def failure_of(cell: Cell) -> str:
    """The error of a cell for the model that wrote it, and what became of the variables; empty if it has none."""
    if cell.error is None:
        return ''
    text = cell.error.traceback.rstrip() or str(cell.error)
    if not cell.rolled_back:
        return text
    lost = f', without {", ".join(cell.lost)}' if cell.lost else ''
    return f'{text}\nThe variables are as before this code{lost}.'
