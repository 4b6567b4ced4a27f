"""Slash commands of the user: Markdown files of the shared folder, sent as messages."""

from collections.abc import Mapping
from pathlib import Path

from habilis.agent.hooks.sanitize import one_line
from habilis.core.errors import HabilisError

FOLDER = Path('.habilis', 'commands')
ARGUMENTS = '$ARGUMENTS'
MAX_SUMMARY = 60


class OwnCommandError(HabilisError):
    """The file of a command cannot be read."""


def own_commands(workspace: str | None) -> Mapping[str, Path]:
    """The files by the names of their commands: `.habilis/commands/review.md` is `/review`."""
    if workspace is None:
        return {}
    return {f'/{file.stem}': file for file in sorted(Path(workspace, FOLDER).glob('*.md')) if file.is_file()}


def summary_of(file: Path) -> str:
    """The first line of a command."""
    return one_line(_read(file).lstrip('# \n').partition('\n')[0], MAX_SUMMARY)


def message_of(file: Path, arguments: str) -> str:
    """The message that a command sends: what follows its name is at `$ARGUMENTS`, or else at the end."""
    text = _read(file).strip()
    return text.replace(ARGUMENTS, arguments) if ARGUMENTS in text else f'{text}\n\n{arguments}'.strip()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        msg = f'cannot read {file}: {error}'
        raise OwnCommandError(msg) from None
