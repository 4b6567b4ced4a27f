"""The user at the terminal, if there is one: questions go to stderr, answers come from stdin."""

import asyncio
import sys
import threading

from habilis.agent.hooks.sanitize import escape_controls, one_line
from habilis.cli.colours import has_colours
from habilis.cli.line_reader import LineReader
from habilis.cli.value_text import call_lines
from habilis.core.approval import CHOICES, WORDS, Approval
from habilis.core.integers import safe_repr
from habilis.core.status_line import current_status
from habilis.tools import ApprovalRequest

YES = frozenset({'y', 'yes'})
NO = frozenset({'n', 'no', ''})
MAX_WAITING = 10
"""Calls that are listed of those that wait together."""

WHOLE = 'diff'
"""The answer that shows all of a long diff."""

MAX_SHORT = 60
MAX_DIFF_ROWS = 60
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
        return await asyncio.to_thread(self._approve, request)

    def _approve(self, request: ApprovalRequest) -> Approval:
        """Ask until the answer is one that an approval can have. Blocks."""
        code = request.code if self.shows_code else ''
        question = describe(request, code, MAX_DIFF_ROWS)
        while True:
            words = (self.ask(f'{question} [{CHOICES}] ') or '').strip()
            answer = Approval.parse(words)
            if answer is not None:
                return answer
            if words.lower().lstrip('/') == WHOLE:
                question = describe(request, code)
            else:
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


def describe(request: ApprovalRequest, code: str = '', most: int | None = None) -> str:
    """The call, its diff or the first rows of it, the code that makes it, and the question."""
    arguments = request.arguments
    if request.diff:  # it shows what is in a long argument
        written = [f'{name}={one_line(safe_repr(value), MAX_SHORT)}' for name, value in arguments.items()]
        call = f'{request.tool}({", ".join(written)})'
        lines = [*_diff_rows(call, request.diff, most), *call_lines('', {}, code=code)[1:]]
    else:
        lines = call_lines(request.tool, arguments, code=code)
    lines += _others(request)
    return '\n'.join(['', *lines, escape_controls(request.question)])


def _others(request: ApprovalRequest) -> list[str]:
    """The calls that wait beside this one, and how many were approved before it."""
    lines: list[str] = []
    if request.waiting:
        shown = [line for call in request.waiting[:MAX_WAITING] for line in call_lines(call.tool, call.arguments)]
        more = len(request.waiting) - MAX_WAITING
        lines += [f'waiting beside it ({len(request.waiting):,}):', *(f'  {line}' for line in shown)]
        lines += [f'  … and {more:,} more'] if more > 0 else []
    if request.earlier:
        lines.append(f'{escape_controls(request.tool)} was approved {request.earlier:,} times in this cell')
    return lines


def _diff_rows(call: str, diff: str, most: int | None) -> list[str]:
    """A call on one line, and its diff."""
    from rich.console import Console

    from habilis.agent.hooks.diff_view import diff_rows, folded

    console = Console(stderr=True, highlight=False)
    with console.capture() as captured:
        for row in folded(diff_rows(diff, console.width), most, f'answer {WHOLE}'):
            console.print(row, soft_wrap=True)
    return [one_line(call, console.width), *captured.get().splitlines()]


def colour_diff(line: str) -> str:
    """A line of a diff in its colour."""
    colour = _DIFF_COLOURS.get(line[:1], '')
    return f'{colour}{line}\033[0m' if colour and has_colours(sys.stderr) else line
