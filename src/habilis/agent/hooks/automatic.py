"""The hook of an agent that was given none: in a notebook its runs are shown below their cells."""

from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.jupyter import JupyterView
from habilis.agent.hooks.notebook import notebook_cell
from habilis.core.settings import Settings
from habilis.journal import recording_scope

MAX_VIEWS = 10
"""Runs of one cell that are shown; a loop over a thousand tasks does not fill the notebook."""

_views: tuple[int | None, int] = (None, 0)


def automatic_hooks(settings: Settings) -> tuple[Hook, ...]:
    """A view for a notebook; nothing elsewhere, and nothing for a run inside a flow or inside another run."""
    global _views  # noqa: PLW0603
    cell = notebook_cell()
    if cell is None or not settings.notebook_view or recording_scope() is not None:
        return ()
    _views = (cell, _views[1] + 1 if _views[0] == cell else 1)
    return (JupyterView(),) if _views[1] <= MAX_VIEWS else ()
