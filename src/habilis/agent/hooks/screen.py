"""Writing to a console what strangers wrote: nothing of it is obeyed, neither by the terminal nor as markup."""

import contextlib
import os
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from habilis.agent.hooks.sanitize import neutral

WIDTH = 80
"""Of a console that does not know its own."""


@dataclass(frozen=True)
class _Raw:
    """Text as it is: no markup, no wrapping, no line added at its end."""

    text: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(_encodable(self.text, console), console.get_style(self.style) if self.style else None)


@dataclass(frozen=True)
class _Neutral:
    """Whatever is inside, neutral after it was rendered: Markdown decodes `%1b` by itself."""

    inside: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.inside, options):
            if segment.control:
                yield segment
            else:
                yield Segment(_encodable(neutral(segment.text), console), segment.style)


def _encodable(text: str, console: Console) -> str:
    """What the console's encoding has no character for is written as an escape."""
    if text.isascii():
        return text
    return text.encode(console.encoding, 'backslashreplace').decode(console.encoding, 'replace')


class Screen:
    """A console, and whether its cursor is at the start of a line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        if console.width < 1:  # COLUMNS=0, as some programs have it that start others; nothing would be shown
            console.width = WIDTH
        self._at_start = True
        self._gone = False

    @property
    def width(self) -> int:
        """Of a line; where there is no terminal, lines may be longer."""
        return self._console.width if self._console.is_terminal else max(self._console.width, 160)

    @property
    def has_open_line(self) -> bool:
        """Whether the last text ended in the middle of a line."""
        return not self._at_start

    def write(self, text: str, style: str = '') -> None:
        """Go on where the last text ended."""
        text = neutral(text)
        if text:
            self._print(_Raw(text, style))
            self._at_start = text.endswith('\n')

    def line(self, text: str, style: str = '') -> None:
        """Whole lines of their own."""
        self.new_line()
        self.write(f'{text}\n', style)

    def new_line(self) -> None:
        """End a line that was begun."""
        if not self._at_start:
            self._print(_Raw('\n', ''))
            self._at_start = True

    @property
    def renders_markdown(self) -> bool:
        """Whether `markdown` looks different from the text itself."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def code(self, source: str) -> None:
        """Highlighted Python, with a line at its side that tells it from its output."""
        self.new_line()
        colours = Syntax('', 'python', theme='ansi_dark', background_color='default')
        highlighted = colours.highlight(neutral(source).strip('\n'))
        highlighted.rstrip()  # the highlighter adds a line
        for line in highlighted.split('\n', allow_blank=True):
            self._print(_Neutral(Text.assemble(('│ ', 'dim'), line)))

    def markdown(self, text: str) -> None:
        """Rendered on a terminal; elsewhere as it was written, which is what a reader of a file wants."""
        if self.renders_markdown:
            self.new_line()
            self._print(_Neutral(Markdown(neutral(text), hyperlinks=False)), soft_wrap=False)
        else:
            self.line(text)

    def _print(self, what: RenderableType, *, soft_wrap: bool = True) -> None:
        if self._gone:
            return
        # For a broken pipe rich would end the process, after taking away its stdout, whatever this console writes to.
        vars(self._console)['on_broken_pipe'] = _raise_again
        try:
            self._console.print(what, soft_wrap=soft_wrap, end='', highlight=False)
        except OSError:  # nobody reads any more (`… | head`), or their disk is full; a run is more than its view
            self._gone = True
            self._lead_nowhere()
        finally:
            del vars(self._console)['on_broken_pipe']

    def _lead_nowhere(self) -> None:
        """What is still buffered would be written when the process ends, and fail again."""
        with contextlib.suppress(OSError, ValueError):  # not every stream has a descriptor
            descriptor = self._console.file.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _raise_again() -> None:
    """Called where the error is being handled."""
    raise  # noqa: PLE0704 - there is one
