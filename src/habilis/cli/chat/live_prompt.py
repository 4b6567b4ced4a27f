"""The prompt of a terminal: a line to type in, always there, with a small live region above it.

What is finished is printed above and scrolls away with the terminal's own scrollback. `prompt_toolkit` is imported
here and in `completion.py` only.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import ANSI, PromptSession
from prompt_toolkit.application import get_app_or_none, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.cursor_shapes import DynamicCursorShapeConfig, ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, emacs_mode, vi_insert_mode, vi_mode, vi_replace_mode
from prompt_toolkit.formatted_text import merge_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.patch_stdout import StdoutProxy
from prompt_toolkit.styles import Style

from habilis.cli.chat.completion import ChatCompleter, completes
from habilis.cli.chat.editor import edit_text
from habilis.cli.chat.front import HOW_TO_LEAVE, LEAVING, PROMPT, Keys
from habilis.cli.chat.live_status import PromptStatus
from habilis.cli.chat.pasted_files import reference_to
from habilis.cli.colours import has_colours

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import AnyFormattedText

MENU_ROWS = 6
MAX_QUEUED_ROWS = 3
MAX_ECHO_ROWS = 20
MAX_ECHO_CHARS = 2000
REPAINT_SECONDS = 0.01
"""Between two writes above the prompt. The default of 0.2 would delay the first words of a reply."""

LAST_CALLBACKS = 10
ESCAPE_SECONDS = 0.3
"""How long Esc waits for Enter, which together make a new line."""

_STYLE = Style.from_dict({'place': 'ansibrightblack', 'queued': 'ansibrightblack', 'mark': 'bold'})


class _WholeLines(StdoutProxy):
    """Prints above the prompt once a line is complete: the prompt would be drawn over one that is not."""

    def flush(self) -> None:
        """Nothing: a complete line is on its way, and the rest of it is still to come."""

    def close(self) -> None:
        """Print the last line as well."""
        super().flush()
        super().close()


class LivePrompt:
    """Reads messages while a turn is under way, too: they wait for their turn."""

    def __init__(self, *, history: Path | None, input: Input | None = None, output: Output | None = None) -> None:
        self.is_present = True
        self.on_stop: Callable[[], bool] = lambda: False
        self.on_message: Callable[[str], bool] = lambda message: False
        self._messages: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting: list[str] = []
        self._rows: Callable[[], Sequence[str]] = tuple
        self._place: Callable[[], str] = str
        self._status: PromptStatus | None = None
        self._mark = PROMPT
        self._answer: asyncio.Future[str | None] | None = None
        self._draft = ''
        """What the user had typed when a question came."""

        self._completer = ChatCompleter()
        self._session: PromptSession[str] = PromptSession(
            self._message,
            multiline=True,
            prompt_continuation='  ',
            history=_open_history(history),
            completer=self._completer,
            complete_while_typing=Condition(self._may_complete),
            reserve_space_for_menu=MENU_ROWS,
            key_bindings=self._keys(),
            style=_STYLE,
            color_depth=None if has_colours(sys.stdout) else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            cursor=DynamicCursorShapeConfig(lambda: ModalCursorShapeConfig() if vi_mode() else None),
            input=input,
            output=output,
        )
        self._session.app.timeoutlen = self._session.app.ttimeoutlen = ESCAPE_SECONDS

    # Reading ----------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Show the prompt until this ends."""
        proxy = _WholeLines(sleep_between_writes=REPAINT_SECONDS, raw=True)
        keyboard = self._session.app.input
        # In cooked mode, which printing above the prompt would switch to, an Enter that is typed arrives as Ctrl-J.
        setattr(keyboard, 'cooked_mode', contextlib.nullcontext)  # noqa: B010 - a method
        with keyboard.raw_mode(), proxy, contextlib.redirect_stdout(proxy), contextlib.redirect_stderr(proxy):
            reading = asyncio.ensure_future(self._read_all())
            await asyncio.sleep(0)  # draws the prompt: what is done from here on may keep the interpreter busy
            try:
                yield
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                self.drop_question()
        for _ in range(LAST_CALLBACKS):  # what was printed last is written by callbacks of the loop
            await asyncio.sleep(0)

    async def _read_all(self) -> None:
        """Run the prompt until the user leaves. It stays while messages are sent, because starting it takes long."""
        try:
            await self._session.prompt_async(handle_sigint=False)
        except asyncio.CancelledError:
            return
        except EOFError:
            pass
        if self.on_stop():  # whoever leaves in the middle of a turn does not wait for what was to follow it
            self._messages = asyncio.Queue()
        self._messages.put_nowait(None)

    def _send(self, buffer: Buffer) -> None:
        # In a locale without UTF-8, characters arrive as the bytes that the terminal sends.
        text = buffer.text.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace')
        if text.strip() in LEAVING:
            self._session.app.exit(exception=EOFError())
            return
        buffer.reset(append_to_history=True)
        if text.strip() and not self.on_message(text):
            self._waiting.append(text)
            self._messages.put_nowait(text)

    async def read(self) -> str | None:
        """The next message, perhaps one that was typed while a turn was under way."""
        text = await self._messages.get()
        if text is not None:
            self._waiting.remove(text)
        return text

    def put_back(self, message: str) -> None:
        """Let the user change a message that was not sent, unless another one is being typed."""
        buffer = self._session.default_buffer
        if not buffer.text:
            buffer.text = message
            buffer.cursor_position = len(message)

    async def ask(self, question: str) -> str | None:
        """Print the question, and let its last line be the prompt until it is answered. What was typed stays."""
        above, _, mark = question.rpartition('\n')
        if above:
            print(above, flush=True)
        buffer = self._session.default_buffer
        self._draft, buffer.text = buffer.text, ''
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._mark = mark
        self._redraw()
        try:
            given = await answer
        finally:
            if self._answer is answer:  # cancelled
                self._end_question()
        print(f'{mark}{given or ""}', flush=True)
        return given

    def _give(self, text: str | None) -> None:
        if self._answer is not None:
            if not self._answer.done():
                self._answer.set_result(text)
            self._end_question()  # at once: what is typed next is no part of the answer

    def _end_question(self) -> None:
        """Bring back what was typed before the question. A half typed answer is dropped with it."""
        buffer = self._session.default_buffer
        self._answer, self._mark = None, PROMPT
        buffer.text, self._draft = self._draft, ''
        buffer.cursor_position = len(buffer.text)
        self._redraw()

    async def edit(self, text: str) -> str:
        """Hide the prompt while the editor has the terminal. What is printed meanwhile is shown afterwards."""
        from prompt_toolkit.input.vt100 import cooked_mode

        async with in_terminal():
            with cooked_mode(self._session.app.input.fileno()):
                return await asyncio.to_thread(edit_text, text)

    def drop_question(self) -> None:
        """Answer the open question with None."""
        self._give(None)

    # Keys -------------------------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add('enter')
        def send(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if self._answer is not None:
                text = buffer.text
                buffer.reset()
                self._give(text)
            elif buffer.complete_state and buffer.complete_state.current_completion:
                buffer.complete_state = None  # Enter takes the completion; the next one sends
            elif buffer.document.char_before_cursor == '\\' and buffer.document.is_cursor_at_the_end:
                buffer.delete_before_cursor()
                buffer.insert_text('\n')
            else:
                self._send(buffer)

        @keys.add('c-c')
        def interrupt(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if self.on_stop():
                return
            if buffer.text:
                buffer.reset()
            else:
                print(HOW_TO_LEAVE, flush=True)

        @keys.add('c-d', filter=Condition(lambda: self._answer is not None and not self._session.default_buffer.text))
        def answer_nothing(event: KeyPressEvent) -> None:
            self._give(None)

        @keys.add('escape', filter=~vi_insert_mode & ~vi_replace_mode)  # there, Esc ends the insertion
        def stop(event: KeyPressEvent) -> None:
            event.current_buffer.cancel_completion()
            self.on_stop()

        self._add_writing_keys(keys)
        return keys

    def _add_writing_keys(self, keys: KeyBindings) -> None:
        @keys.add('c-j')
        @keys.add('escape', 'enter', filter=emacs_mode)
        def add_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text('\n')

        @keys.add('<bracketed-paste>')
        def paste(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            is_message = self._answer is None and not buffer.text.startswith(('/', '!'))
            file = reference_to(event.data) if is_message and buffer.document.char_before_cursor != '@' else ''
            buffer.insert_text(f'{file} ' if file else event.data.replace('\r\n', '\n').replace('\r', '\n'))

    def use_keys(self, keys: Keys) -> None:
        """Edit with the keys of emacs or vim."""
        self._session.editing_mode = EditingMode.VI if keys == 'vim' else EditingMode.EMACS

    def _may_complete(self) -> bool:
        return self._answer is None and completes(self._session.default_buffer.document)

    # What is shown ----------------------------------------------------------------------------------------------------

    def _message(self) -> 'AnyFormattedText':
        parts: list[AnyFormattedText] = []
        for row in self._status.rows() if self._status is not None else ():
            parts += [ANSI(row), '\n']
        for row in self._rows() if self._status is not None else ():
            parts.append([('class:place', f'{_fit(row)}\n')])
        for text in self._waiting[-MAX_QUEUED_ROWS:]:
            parts.append([('class:queued', f'{PROMPT}{_first_line(text)}\n')])
        if self._answer is None and (place := self._place()):
            parts.append([('class:place', f'{_fit(place)}\n')])
        parts.append([('class:mark', self._mark)])
        return merge_formatted_text(parts)

    def _redraw(self) -> None:
        if self._session.app.is_running:
            self._session.app.invalidate()

    @contextlib.contextmanager
    def working(self, phase: str) -> Generator[None]:
        """Show a status line above the prompt."""
        if self._status is not None:
            yield
            return
        self._status = PromptStatus(self._redraw)
        self._status.start(phase)
        try:
            yield
        finally:
            self._status.stop()
            self._status = None
            self._redraw()

    def watch(self, rows: Callable[[], Sequence[str]]) -> bool:
        """Show them below the status line."""
        self._rows = rows
        return True

    def describe(self, place: Callable[[], str]) -> None:
        """Show it dimmed above the line to type in, as it is at each moment: a turn may change the mode."""
        self._place = place
        self._redraw()

    def ring(self) -> None:
        """Ring the bell of the terminal."""
        self._session.app.output.bell()
        self._session.app.output.flush()

    def offer(self, commands: Mapping[str, str]) -> None:
        """Complete these slash commands as well."""
        self._completer.own = commands

    def echo(self, message: str) -> None:
        """Print the start of the message, which the prompt has erased."""
        from habilis.agent.hooks.sanitize import escape_controls  # loaded by now; the prompt is shown before

        rows = escape_controls(message[:MAX_ECHO_CHARS]).split('\n')[:MAX_ECHO_ROWS]
        left = message.count('\n') + 1 - len(rows)
        if left > 0:
            rows.append(f'… and {left:,} more lines')
        elif len(message) > MAX_ECHO_CHARS:
            rows[-1] += '…'
        lines = [f'{PROMPT if not number else "  "}{row}' for number, row in enumerate(rows)]
        text = '\n'.join(lines)
        print(f'\033[1m{text}\033[0m' if has_colours(sys.stdout) else text, flush=True)


def _open_history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:  # a data folder that cannot be written
        return InMemoryHistory()
    return FileHistory(str(path))


def _first_line(text: str) -> str:
    return _fit(' '.join(text[:MAX_ECHO_CHARS].split()), 2)


def _fit(text: str, used: int = 0) -> str:
    app = get_app_or_none()
    width = (app.output.get_size().columns if app is not None else 80) - used - 1
    return text if len(text) <= width else f'{text[: max(0, width - 1)]}…'
