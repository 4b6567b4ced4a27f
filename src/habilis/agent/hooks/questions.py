"""Questions to the user. A tool asks by raising `NeedsAnswer`, which stops the code but is not a failure."""

from habilis.tools.contract import NeedsAnswer


def is_question(error: str | None) -> bool:
    """Whether the error of a call or cell is a question to the user."""
    return error is not None and error.partition(':')[0] == NeedsAnswer.__name__
