"""Completion of slash commands and of `@file`."""

import os
import re
from collections.abc import Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from habilis.cli.chat.command_names import COMMANDS

MAX_FILES = 50
_FILE = re.compile(r'(?:^|\s)@(\S*)$')


def completes(document: Document) -> bool:
    """Whether the cursor is where something can be completed."""
    text = document.text_before_cursor
    return (text.startswith('/') and '\n' not in text and document.text.count(' ') < 2) or bool(_FILE.search(text))


class ChatCompleter(Completer):
    """Commands at the start of a message, their first words, and paths after `@`."""

    def __init__(self) -> None:
        self.own: Mapping[str, str] = {}
        """Commands of the user, with what they do."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The completions for what is before the cursor."""
        text = document.text_before_cursor
        if found := _FILE.search(text):
            yield from _files(found[1])
        elif text.startswith('/'):
            yield from _commands(text, self.own)


def _commands(text: str, own: Mapping[str, str]) -> Iterable[Completion]:
    name, space, rest = text.partition(' ')
    if space:
        command = COMMANDS.get(name)
        words = command.words if command is not None else ()
        yield from (Completion(word, -len(rest)) for word in words if word.startswith(rest) and word != rest)
        return
    for each, summary in {**own, **{known: command.summary for known, command in COMMANDS.items()}}.items():
        if each.startswith(name) and each != name:
            yield Completion(each, -len(name), display_meta=summary)


def _files(start: str) -> Iterable[Completion]:
    folder, _, name = start.rpartition('/')
    place = os.path.expanduser(f'{folder}/' if folder or start.startswith('/') else '.')
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return
    shown = [one for one in entries if one.name.startswith(name) and (name.startswith('.') or one.name[0] != '.')]
    for entry in shown[:MAX_FILES]:
        ending = '/' if entry.is_dir() else ''
        yield Completion(f'{entry.name}{ending}', -len(name))
