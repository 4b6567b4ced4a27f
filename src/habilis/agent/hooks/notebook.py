"""Whether this process is the kernel of a notebook, and which runs the current cell has already shown."""

import sys
from typing import Any

_shown: tuple[int | None, set[str]] = (None, set())


def notebook_cell() -> int | None:
    """Number of the notebook cell that is executed; None outside of a notebook. IPython is never imported for it."""
    ipython: Any = sys.modules.get('IPython')
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, 'get_ipython') else None
    return shell.execution_count if shell is not None and hasattr(shell, 'kernel') else None


def mark_shown(run: str) -> None:
    """Remember that the current cell shows this run, so that its result is not shown again below."""
    global _shown  # noqa: PLW0603
    cell = notebook_cell()
    if _shown[0] != cell:
        _shown = (cell, set())
    _shown[1].add(run)


def was_shown(run: str) -> bool:
    """Whether the current cell shows this run."""
    cell = notebook_cell()
    return cell is not None and _shown[0] == cell and run in _shown[1]
