"""Asks the terminal what pictures it can show. It answers with keys, which are taken out of what the user types."""

import sys

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.output import Output

from habilis.cli.terminal_graphics import ANSWER, QUESTION, needs_question, note_answer


def ask_for_graphics(keyboard: Input, output: Output) -> None:
    """Send the question. The answer is noted when it arrives; until then, the terminal shows no pictures."""
    if not needs_question(sys.stdout):
        return
    terminal = sys.stdout.fileno()
    note_answer(terminal, '')
    read_keys = keyboard.read_keys

    def read() -> list[KeyPress]:
        keys = read_keys()
        found = ANSWER.search(''.join(key.data for key in keys))
        if found is None:
            return keys
        note_answer(terminal, found[0])
        return _without(keys, found.start(), found.end())

    setattr(keyboard, 'read_keys', read)  # noqa: B010 - a method
    output.write_raw(QUESTION)
    output.flush()


def _without(keys: list[KeyPress], start: int, end: int) -> list[KeyPress]:
    """The keys but for those that made these characters."""
    kept: list[KeyPress] = []
    at = 0
    for key in keys:
        if not start <= at < end:
            kept.append(key)
        at += len(key.data)
    return kept
