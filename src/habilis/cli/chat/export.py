"""Write a chat to a file: Markdown, or JSON by its ending."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from habilis.assistant.shell_commands import ROLE
from habilis.cli.memory.opening import entry_json
from habilis.cli.printing import format_time
from habilis.core.errors import HabilisError
from habilis.memory import Turn

MARKDOWN = ('', '.md', '.markdown', '.txt')


class ExportError(HabilisError):
    """A chat cannot be written to a file."""


def export_chat(name: str, turns: Sequence[Turn]) -> None:
    """Write turns to a new file. Raises `ExportError`."""
    ending = Path(name).suffix.lower()
    if ending == '.json':
        text = json.dumps([entry_json(turn) for turn in turns], indent=1, ensure_ascii=False)
    elif ending in MARKDOWN:
        text = '\n\n'.join(f'**{turn.role}** · {format_time(turn.time)}\n\n{_words(turn)}' for turn in turns)
    else:
        msg = f'a chat is written as Markdown or JSON, not as {ending}: /export {Path(name).with_suffix(".md")}'
        raise ExportError(msg)
    try:
        with open(os.path.expanduser(name), 'x', encoding='utf-8') as file:
            file.write(f'{text}\n')
    except FileExistsError:
        msg = f'{name} exists; give another name: /export FILE'
        raise ExportError(msg) from None
    except OSError as error:
        msg = f'cannot write {name}: {error.strerror or error}'
        raise ExportError(msg) from None


def _words(turn: Turn) -> str:
    """The text of a turn; that of a command is no Markdown."""
    if turn.role != ROLE:
        return turn.text
    fence = '```'
    while fence in turn.text:
        fence += '`'
    return f'{fence}console\n{turn.text}\n{fence}'
