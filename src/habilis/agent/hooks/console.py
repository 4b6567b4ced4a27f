"""Writes untrusted text to a rich console: escape sequences and markup in it have no effect."""

import contextlib
import os
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from habilis.agent.hooks.sanitize import escape_controls

WIDTH = 80
"""Width of a console that reports none."""


@dataclass(frozen=True)
class _Raw:
    """Literal text: no markup, no wrapping, no newline added."""

    text: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(_encodable(self.text, console), console.get_style(self.style) if self.style else None)


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


def _encodable(text: str, console: Console) -> str:
    """The text with characters that the console cannot encode escaped."""
    if text.isascii():
        return text
    return text.encode(console.encoding, 'backslashreplace').decode(console.encoding, 'replace')


class SafeConsole:
    """A console that escapes what it writes and knows whether its cursor is at the start of a line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        if console.width < 1:  # some parent processes set COLUMNS=0; nothing would be shown
            console.width = WIDTH
        self._is_at_line_start = True
        self._is_broken = False

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
        if text:
            self._print(_Raw(text, style))
            self._is_at_line_start = text.endswith('\n')

    def line(self, text: str, style: str = '') -> None:
        """Write text on lines of its own."""
        self.new_line()
        self.write(f'{text}\n', style)

    def new_line(self) -> None:
        """Start a new line unless the cursor is at the start of one."""
        if not self._is_at_line_start:
            self._print(_Raw('\n', ''))
            self._is_at_line_start = True

    @property
    def renders_markdown(self) -> bool:
        """Whether `markdown` renders its text."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def code(self, source: str) -> None:
        """Write highlighted Python with a bar on its left."""
        self.new_line()
        colours = Syntax('', 'python', theme='ansi_dark', background_color='default')
        highlighted = colours.highlight(escape_controls(source).strip('\n'))
        highlighted.rstrip()  # the highlighter adds a newline
        for line in highlighted.split('\n', allow_blank=True):
            self._print(_Escaped(Text.assemble(('│ ', 'dim'), line)))

    def markdown(self, text: str) -> None:
        """Write Markdown, rendered on a terminal and as source elsewhere."""
        if self.renders_markdown:
            self.new_line()
            self._print(_Escaped(Markdown(escape_controls(text), hyperlinks=False)), soft_wrap=False)
        else:
            self.line(text)

    def _print(self, content: RenderableType, *, soft_wrap: bool = True) -> None:
        if self._is_broken:
            return
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
