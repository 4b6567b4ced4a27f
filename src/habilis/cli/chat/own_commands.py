"""Slash commands of the user: Markdown files of the shared folder, sent as messages."""

from collections.abc import Mapping
from pathlib import Path

from habilis.agent.hooks.sanitize import one_line
from habilis.assistant.shared_folders import files_within
from habilis.core.errors import HabilisError
from habilis.core.regular_files import read_regular

FOLDER = Path('.habilis', 'commands')
ARGUMENTS = '$ARGUMENTS'
MAX_SUMMARY = 60
MAX_BYTES = 100_000


class OwnCommandError(HabilisError):
    """The file of a command cannot be read."""


def own_commands(workspace: str | None) -> Mapping[str, Path]:
    """The files by the names of their commands: `.habilis/commands/review.md` is `/review`."""
    if workspace is None:
        return {}
    return {f'/{file.stem}': file for file in files_within(workspace, FOLDER, '*.md')}


def summary_of(file: Path) -> str:
    """The first line of a command; empty if it cannot be read, which whoever uses it is told."""
    try:
        return one_line(_read(file).lstrip('# \n').partition('\n')[0], MAX_SUMMARY)
    except OwnCommandError:
        return ''


def message_of(file: Path, arguments: str) -> str:
    """The message that a command sends: what follows its name is at `$ARGUMENTS`, or else at the end."""
    text = _read(file).strip()
    return text.replace(ARGUMENTS, arguments) if ARGUMENTS in text else f'{text}\n\n{arguments}'.strip()


def _read(file: Path) -> str:
    try:
        return read_regular(file, limit=MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f'cannot read {file}: {error}'
        raise OwnCommandError(msg) from None
