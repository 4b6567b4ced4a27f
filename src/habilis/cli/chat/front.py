"""What the chat needs of a terminal, and the plain form of it: lines in, lines out."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Literal, Protocol

from habilis.cli.chat.editor import edit_text
from habilis.cli.line_reader import LineReader

LEAVING = frozenset({'q', 'exit', 'quit', '/q', '/quit', '/exit'})
PROMPT = '> '
Keys = Literal['emacs', 'vim']
HOW_TO_LEAVE = 'To leave: q, /quit or Ctrl-D.'


class FrontEnd(Protocol):
    """Reads messages, asks questions, and shows what happens."""

    is_present: bool
    """Whether a person can answer questions."""

    on_stop: Callable[[], bool]
    """Called when the user wants to stop the turn under way. False if there is none."""

    on_message: Callable[[str], bool]
    """Called with a message when it is sent. True if it is dealt with at once; else `read` returns it in its turn."""

    def opened(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Be ready to read and to write."""
        ...

    async def read(self) -> str | None:
        """The next message; None when the user leaves."""
        ...

    def put_back(self, message: str) -> None:
        """Let the user change a message that was not sent."""
        ...

    async def ask(self, question: str) -> str | None:
        """Ask in the middle of a turn: the last line of the question is the prompt. None: no answer."""
        ...

    async def edit(self, text: str) -> str:
        """The text as the user has changed it in their editor. Raises `EditorError`."""
        ...

    def drop_question(self) -> None:
        """Answer the open question with None."""
        ...

    def working(self, phase: str) -> contextlib.AbstractContextManager[None]:
        """Show that something happens, in a status line if there is one."""
        ...

    def watch(self, rows: Callable[[], Sequence[str]]) -> bool:
        """Show these rows while something happens. False if nothing that changes is shown."""
        ...

    def describe(self, place: Callable[[], str]) -> None:
        """Show where the user is: model and sandbox."""
        ...

    def echo(self, message: str) -> None:
        """Show the message whose turn starts."""
        ...

    def ring(self) -> None:
        """Call the user, who may be looking elsewhere."""
        ...

    def offer(self, commands: Mapping[str, str]) -> None:
        """Complete these slash commands as well: their names, with what they do."""
        ...

    def use_keys(self, keys: Keys) -> None:
        """Edit what is typed with these keys."""
        ...


class PlainFront:
    """Without colours and without lines that change: for pipes and for screen readers."""

    def __init__(self) -> None:
        self.is_present = sys.stdin.isatty()
        self.on_stop: Callable[[], bool] = lambda: False
        self.on_message: Callable[[str], bool] = lambda message: False
        self._place = ''
        self._lines = LineReader()
        self._stopped = threading.Event()
        """Set to stop waiting for a line."""

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Let Ctrl-C stop the turn, or the wait for a line."""
        loop = asyncio.get_running_loop()
        if self.is_present:  # else Ctrl-C ends the command
            with contextlib.suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            self._stopped.set()
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        if not self.on_stop():
            print(f'\n{HOW_TO_LEAVE}', flush=True)
        self._stopped.set()

    async def read(self) -> str | None:
        """The next message. A line that ends with a backslash continues on the next one."""
        text = ''
        while True:
            line = await self.ask(PROMPT if not text else '. ')
            if line is None:
                return text or None
            if not line.endswith('\\'):
                return None if (text + line).strip() in LEAVING else text + line
            text += f'{line[:-1]}\n'

    def put_back(self, message: str) -> None:
        """Nothing: the terminal still shows it."""

    async def ask(self, question: str) -> str | None:
        """Ask on stdout, if a person is there."""
        if self.is_present:
            print(question, end='', flush=True)
        while True:
            self._stopped.clear()
            line = await asyncio.to_thread(self._lines.read, self._stopped)
            if line is not None or not self._stopped.is_set() or question != PROMPT:
                return line
            print(question, end='', flush=True)  # Ctrl-C at the prompt

    async def edit(self, text: str) -> str:
        """Start the editor."""
        return await asyncio.to_thread(edit_text, text)

    def drop_question(self) -> None:
        """Answer the open question with None."""
        self._stopped.set()

    @contextlib.contextmanager
    def working(self, phase: str) -> Generator[None]:
        """Nothing is shown: what is printed is enough."""
        yield

    def watch(self, rows: Callable[[], Sequence[str]]) -> bool:
        """No: what happens is printed."""
        return False

    def describe(self, place: Callable[[], str]) -> None:
        """Print it, if it is new."""
        text = place()
        if text != self._place:
            print(text, flush=True)
        self._place = text

    def echo(self, message: str) -> None:
        """Nothing: the terminal has shown what was typed."""

    def ring(self) -> None:
        """Nothing: a pipe has no bell, and a screen reader speaks."""

    def offer(self, commands: Mapping[str, str]) -> None:
        """Nothing is completed."""

    def use_keys(self, keys: Keys) -> None:
        """Nothing: the terminal edits the line."""
