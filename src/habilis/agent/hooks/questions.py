"""Questions to people. A tool asks one by raising, so that the code stops there; that is no failure."""

from habilis.tools.contract import NeedsAnswer


def is_question(error: str | None) -> bool:
    """Whether a call, or the cell that made it, ended with this only because a person is asked something."""
    return error is not None and error.partition(':')[0] == NeedsAnswer.__name__
