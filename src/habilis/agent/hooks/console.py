"""Writes untrusted text to a rich console: escape sequences and markup in it have no effect."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from habilis.agent.hooks.sanitize import escape_controls
from habilis.core.status_line import StatusLine, current_status

WIDTH = 80
"""Width of a console that reports none."""

MAX_CONTEXT_LINES = 300
"""Lines of code before a line that are highlighted with it."""

_HIGHLIGHTER = Syntax('', 'python', theme='ansi_dark', background_color='default')


@dataclass(frozen=True)
class _Raw:
    """Pieces of literal text with their styles: no markup, no wrapping, no newline added."""

    pieces: Sequence[tuple[str, str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style in self.pieces:
            yield Segment(_encodable(text, console), console.get_style(style) if style else None)


@dataclass(frozen=True)
class _Escaped:
    """Escapes a renderable after rendering, because Markdown decodes `%1b` itself."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.content, options):
            if segment.control:
                yield segment
            else:
                yield Segment(_encodable(escape_controls(segment.text), console), segment.style)


@dataclass(frozen=True)
class _Trimmed:
    """A renderable without blank rows at its ends, and without the spaces that fill its rows: they would be copied."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [_trimmed(row) for row in console.render_lines(self.content, options, pad=False)]
        filled = [number for number, row in enumerate(rows) if row]
        for row in rows[filled[0] : filled[-1] + 1] if filled else ():
            yield from row
            yield Segment.line()


def _trimmed(row: list[Segment]) -> list[Segment]:
    while row and not (row[-1].style and row[-1].style.bgcolor):
        text = row[-1].text.rstrip(' ')
        if text:
            return [*row[:-1], Segment(text, row[-1].style)]
        row = row[:-1]
    return row


def _encodable(text: str, console: Console) -> str:
    """The text with characters that the console cannot encode escaped."""
    if text.isascii():
        return text
    return text.encode(console.encoding, 'backslashreplace').decode(console.encoding, 'replace')


def _like(console: Console) -> Console:
    """A console that renders in the same way, with a lock of its own, and writes nowhere."""
    colors = cast('Literal["standard", "256", "truecolor", "windows"] | None', console.color_system)
    nowhere = io.TextIOWrapper(io.BytesIO(), encoding=console.encoding)
    return Console(file=nowhere, force_terminal=console.is_terminal, color_system=colors, no_color=console.no_color)


class SafeConsole:
    """A console that escapes what it writes and knows whether its cursor is at the start of a line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        if console.width < 1:  # some parent processes set COLUMNS=0; nothing would be shown
            console.width = WIDTH
        self._draft_console = _like(console)
        self._is_at_line_start = True
        self._is_broken = False
        self._unfinished: list[tuple[str, str]] = []
        """The last line and its styles, while it is shown above the status line and not printed."""

    @property
    def _status(self) -> StatusLine | None:
        """The status line on the same terminal."""
        is_shared = self._console.is_terminal and self._console.file in (sys.stdout, sys.stderr)
        status = current_status() if is_shared else None
        return status if status is not None and status.is_live else None

    @property
    def width(self) -> int:
        """Characters per line; at least 160 if this is not a terminal."""
        return self._console.width if self._console.is_terminal else max(self._console.width, 160)

    @property
    def has_open_line(self) -> bool:
        """Whether the cursor is in the middle of a line."""
        return not self._is_at_line_start

    def write(self, text: str, style: str = '') -> None:
        """Write text at the cursor."""
        text = escape_controls(text)
        if not text:
            return
        if self._status is None:
            self._print_pieces(text, style)
            return
        finished, newline, rest = text.rpartition('\n')
        if newline:
            self._print_pieces(finished + newline, style)
        if rest:  # held back until the line ends: a status line can only be below complete lines
            self._unfinished.append((rest, style))
            self.draft(Text.assemble(*self._unfinished))

    def _print_pieces(self, text: str, style: str = '') -> None:
        """Print what was held back and this text, at once: a prompt may be drawn between two writes."""
        pieces, self._unfinished = [*self._unfinished, (text, style)], []
        self._print(_Raw(pieces))
        self._is_at_line_start = text.endswith('\n')

    def draft(self, content: RenderableType) -> None:
        """Show unfinished text above the status line, if there is one, until something is printed."""
        status = self._status
        if status is not None:
            status.set_preview(lambda width: self.draft_rows(content, width))

    def draft_markdown(self, text: str) -> None:
        """Show unfinished Markdown above the status line."""
        self.draft(Markdown(escape_controls(text), hyperlinks=False))

    def draft_code(self, line: str, before: Sequence[str]) -> None:
        """Show an unfinished line of code above the status line."""
        for text in self._highlight([line], before):
            self.draft(text)

    def draft_rows(self, content: RenderableType, width: int) -> list[str]:
        """What a draft looks like.

        Also while the console is printing: what it prints waits for the status line, which waits for these rows.
        """
        with self._draft_console.capture() as capture:  # belongs to the thread that draws
            self._draft_console.print(_Escaped(content), width=width, highlight=False)
        return [row.rstrip() for row in capture.get().splitlines()]

    def line(self, text: str, style: str = '') -> None:
        """Write text on lines of its own."""
        self.new_line()
        self.write(f'{text}\n', style)

    def new_line(self) -> None:
        """Start a new line unless the cursor is at the start of one."""
        if self._unfinished or not self._is_at_line_start:
            self._print_pieces('\n')

    @property
    def renders_markdown(self) -> bool:
        """Whether `markdown` renders its text."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def code(self, lines: Sequence[str], before: Sequence[str] = ()) -> None:
        """Write highlighted lines of Python with a bar on their left. `before` are the lines above them."""
        self.new_line()
        for line in self._highlight(lines, before):
            self._print(_Escaped(line))

    def rows(self, rows: Sequence[Text]) -> None:
        """Write rows, at once."""
        self.new_line()
        if rows:
            self._print(_Escaped(Text('\n').join(rows)))

    def _highlight(self, lines: Sequence[str], before: Sequence[str]) -> list[Text]:
        context = before[-MAX_CONTEXT_LINES:]
        highlighted = _HIGHLIGHTER.highlight('\n'.join([*context, *lines]))
        rows = highlighted.split('\n', allow_blank=True)[: len(context) + len(lines)]
        rows += [Text()] * (len(context) + len(lines) - len(rows))  # the highlighter drops blank lines at the ends
        return [Text.assemble(('│ ', 'dim'), row) for row in rows[len(context) :]]

    def markdown(self, text: str) -> None:
        """Write Markdown, rendered on a terminal and as source elsewhere."""
        if self.renders_markdown:
            self.new_line()
            self._print(_Escaped(_Trimmed(Markdown(escape_controls(text), hyperlinks=False))), soft_wrap=False)
        else:
            self.line(text)

    def _print(self, content: RenderableType, *, soft_wrap: bool = True) -> None:
        if self._is_broken:
            return
        if (status := self._status) is not None:
            status.set_preview(None)
        # On a broken pipe rich would redirect stdout and exit the process, whatever this console writes to.
        vars(self._console)['on_broken_pipe'] = _reraise
        try:
            self._console.print(content, soft_wrap=soft_wrap, end='', highlight=False)
        except OSError:  # the reader is gone (`… | head`) or the disk is full: the run continues without output
            self._is_broken = True
            self._discard_output()
        finally:
            del vars(self._console)['on_broken_pipe']

    def _discard_output(self) -> None:
        """Redirect to the null device: buffered text would be flushed at exit and fail again."""
        with contextlib.suppress(OSError, ValueError):  # not every stream has a descriptor
            descriptor = self._console.file.fileno()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, descriptor)
            os.close(null)


def _reraise() -> None:
    """Called by rich inside its `except` block."""
    raise  # noqa: PLE0704 - called while an error is handled
