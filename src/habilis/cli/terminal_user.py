"""The user at the terminal, if there is one: questions go to stderr, answers come from stdin."""

import asyncio
import sys
import threading

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.colours import has_colours
from habilis.cli.line_reader import LineReader
from habilis.cli.value_text import call_lines
from habilis.core.approval import CHOICES, WORDS, Approval
from habilis.core.status_line import current_status
from habilis.tools import ApprovalRequest

YES = frozenset({'y', 'yes'})
NO = frozenset({'n', 'no', ''})
MAX_WAITING = 10
"""Calls that are listed of those that wait together."""

_DIFF_COLOURS = {'+': '\033[32m', '-': '\033[31m', '@': '\033[36m'}


class TerminalUser:
    """Asks one question at a time."""

    def __init__(self, *, is_present: bool | None = None) -> None:
        self.is_present = sys.stdin.isatty() and sys.stderr.isatty() if is_present is None else is_present
        """Whether somebody can answer."""

        self.shows_code = False
        """Whether a question shows the code that makes the call. Else the person has seen it."""

        self._lines = LineReader()
        self._closed = threading.Event()

    def close(self) -> None:
        """Stop waiting for an answer."""
        self._closed.set()

    async def answer(self, question: str) -> str | None:
        """The user's answer; None if there is no user or the input ends (Ctrl-D)."""
        return await asyncio.to_thread(self.ask, f'\n{escape_controls(question)}\n> ')

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Whether a tool may be called. Not if there is no user."""
        return await asyncio.to_thread(self._approve, describe(request, request.code if self.shows_code else ''))

    def _approve(self, question: str) -> Approval:
        """Ask until the answer is one that an approval can have. Blocks."""
        while True:
            words = self.ask(f'{question} [{CHOICES}] ')
            answer = Approval.parse(words or '')
            if answer is not None:
                return answer
            question = f'{WORDS}\n{question.rpartition(chr(10))[2]}'

    def confirm(self, question: str) -> bool:
        """Ask until the answer is yes or no. Blocks."""
        while True:
            answer = self.ask(f'{question} [y/N] ')
            if answer is None or answer.strip().lower() in NO:
                return False
            if answer.strip().lower() in YES:
                return True

    def ask(self, prompt: str) -> str | None:
        """Read one line. Blocks until it arrives, or until `close`."""
        if not self.is_present or self._closed.is_set():
            return None
        with current_status().paused():
            print(prompt, end='', file=sys.stderr, flush=True)
            line = self._lines.read(self._closed)
            if line is None and not self._closed.is_set():  # Ctrl-D leaves the cursor on the prompt's line
                print(file=sys.stderr, flush=True)
        return line


def describe(request: ApprovalRequest, code: str = '') -> str:
    """The call, its diff, the code that makes it, the calls that wait beside it, and the question."""
    lines = call_lines(request.tool, request.arguments, diff=request.diff, code=code)
    if request.waiting:
        shown = [line for call in request.waiting[:MAX_WAITING] for line in call_lines(call.tool, call.arguments)]
        more = len(request.waiting) - MAX_WAITING
        lines += [f'waiting beside it ({len(request.waiting):,}):', *(f'  {line}' for line in shown)]
        lines += [f'  … and {more:,} more'] if more > 0 else []
    if request.earlier:
        lines.append(f'{escape_controls(request.tool)} was approved {request.earlier:,} times in this cell')
    return '\n'.join(['', *map(colour_diff, lines), escape_controls(request.question)])


def colour_diff(line: str) -> str:
    """A line of a diff in its colour."""
    colour = _DIFF_COLOURS.get(line[:1], '')
    return f'{colour}{line}\033[0m' if colour and has_colours(sys.stderr) else line
