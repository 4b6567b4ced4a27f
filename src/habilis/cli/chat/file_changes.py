"""What a turn has changed in the files of the shared folder: diffs where it happens, and one line in all."""

from collections.abc import Sequence

from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.terminal import TerminalView
from habilis.assistant import FileEdit

MAX_NAMED = 5
MAX_NAME = 60
MAX_FILES = 10
"""Files that are shown at once."""

MAX_ROWS = 40
"""Rows that are shown at once of all their diffs."""


def show_edits(view: TerminalView, edits: Sequence[FileEdit]) -> None:
    """Show the start of what has changed."""
    left = MAX_ROWS
    for edit in edits[:MAX_FILES]:
        if edit.diff and left > 0:
            left -= view.show_diff(edit.diff, left, '/diff')
        else:
            view.show_line(one_line(str(edit), MAX_NAME))
    if len(edits) > MAX_FILES:
        view.show_line(f'… {len(edits) - MAX_FILES:,} more files: /diff')


def show_all(view: TerminalView, edits: Sequence[FileEdit]) -> None:
    """Show all that has changed."""
    for edit in edits:
        if edit.diff:
            view.show_diff(edit.diff)
        else:
            view.show_line(one_line(str(edit), MAX_NAME))


def summary(edits: Sequence[FileEdit]) -> str:
    """The files, with the lines added and removed."""
    count = f'{len(edits):,} {"file" if len(edits) == 1 else "files"}'
    return f'changed {count}: {named([str(edit) for edit in edits])}'


def named(texts: Sequence[str]) -> str:
    """The first ones, and how many there are beside them."""
    more = [f'{len(texts) - MAX_NAMED:,} more'] if len(texts) > MAX_NAMED else []
    return ', '.join([*(one_line(text, MAX_NAME) for text in texts[:MAX_NAMED]), *more])
