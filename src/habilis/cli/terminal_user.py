"""The person at the terminal, if there is one: sees questions on stderr, answers on stdin."""

import asyncio
import sys
import threading

from habilis.agent.hooks.harmless import neutral, one_line
from habilis.cli.line_reader import Lines
from habilis.cli.sandbox.terminal import colourful
from habilis.tools import ApprovalRequest

YES = frozenset({'y', 'yes'})
NO = frozenset({'n', 'no', ''})
BRIEF = 200
"""Characters of an argument that are shown; the diff has the rest."""

_COLOURS = {'+': '\033[32m', '-': '\033[31m', '@': '\033[36m'}


class Person:
    """Asks one thing at a time."""

    def __init__(self, *, there: bool | None = None) -> None:
        self.there = sys.stdin.isatty() and sys.stderr.isatty() if there is None else there
        """Whether anyone can answer."""

        self._lines = Lines()
        self._gone = threading.Event()

    def leave(self) -> None:
        """Stop waiting for an answer."""
        self._gone.set()

    async def answer(self, question: str) -> str | None:
        """What the person says; None if there is none, or if they end the input (Ctrl-D)."""
        return await asyncio.to_thread(self.ask, f'\n{neutral(question)}\n> ')

    async def approve(self, request: ApprovalRequest) -> bool:
        """Whether a tool may be called. Nobody there is a no."""
        return await asyncio.to_thread(self.confirm, describe(request))

    def confirm(self, question: str) -> bool:
        """Yes or no; asked again until it is one of them. Blocks."""
        while True:
            answer = self.ask(f'{question} [y/N] ')
            if answer is None or answer.strip().lower() in NO:
                return False
            if answer.strip().lower() in YES:
                return True

    def ask(self, prompt: str) -> str | None:
        """One line. Blocks until it is there, or until `leave`."""
        if not self.there or self._gone.is_set():
            return None
        print(prompt, end='', file=sys.stderr, flush=True)
        line = self._lines.read(self._gone)
        if line is None and not self._gone.is_set():  # Ctrl-D, after which the cursor is where it was
            print(file=sys.stderr, flush=True)
        return line


def describe(request: ApprovalRequest) -> str:
    """The question, with what would change."""
    arguments = ', '.join(f'{name}={one_line(repr(value), BRIEF)}' for name, value in request.arguments.items())
    diff = [_painted(line) for line in neutral(request.diff).splitlines()]
    return '\n'.join(['', f'{request.tool}({arguments})', *diff, neutral(request.question)])


def _painted(line: str) -> str:
    """A line of a diff."""
    colour = _COLOURS.get(line[:1], '')
    return f'{colour}{line}\033[0m' if colour and colourful(sys.stderr) else line
