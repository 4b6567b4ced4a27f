"""A run below a notebook cell, updated while it goes on."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import Protocol, cast

from habilis.agent.contract import Result
from habilis.agent.hooks.prose import Prose
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import neutral, one_line
from habilis.agent.hooks.terminal import SCRIPTED
from habilis.agent.hooks.tokens import money
from habilis.core.events import Event
from habilis.models.contract import Delta, Model
from habilis.sandbox.contract import Cell, Display, ToolCall

PAUSE = timedelta(seconds=0.1)
"""Between two updates for text that is being written; everything else is shown at once."""

MAX_TEXT = 20_000
MAX_BLOCKS = 400
_IMAGES = frozenset({'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml'})

# A page made in the sandbox is shown without scripts, and may load nothing: an address could carry data away.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_SAID = 'white-space:pre-wrap;opacity:0.7'
_MONO = 'white-space:pre-wrap;overflow-wrap:anywhere;margin:0.3em 0;font-family:monospace'


class _Handle(Protocol):
    """What `IPython.display.display` returns: something shown, that can be shown anew."""

    def update(self, obj: object) -> None: ...


@dataclass
class _Panel:
    """What is shown of one run."""

    handle: _Handle | None = None
    blocks: list[str] = field(default_factory=list[str])
    prose: Prose = field(default_factory=Prose)
    live: str = ''
    """Text that is still growing: what the model says, or what the code prints."""

    live_style: str = ''
    drawn: datetime | None = None

    def settle(self) -> None:
        """What was growing is complete."""
        if self.live.strip():
            self.add(self.live.strip('\n'), self.live_style)
        self.live = ''

    def add(self, text: str, style: str = '') -> None:
        """A block of text."""
        self.add_html(_block(text, style))

    def add_html(self, html: str) -> None:
        """A block that is safe already. Of too many, those in the middle go."""
        self.blocks.append(html)
        if len(self.blocks) > MAX_BLOCKS:
            del self.blocks[MAX_BLOCKS // 2]

    def grow(self, text: str, style: str) -> None:
        """More of the same."""
        if style != self.live_style:
            self.settle()
        self.live, self.live_style = self.live + text, style

    def html(self) -> str:
        """All of it."""
        live = _block(self.live, self.live_style) if self.live.strip() else ''
        return f'<div class="habilis">{"".join(self.blocks)}{live}</div>'


class JupyterView:
    """Shows each run in an output of its own below the cell: what is said, code, output, images, answer, cost.

    For `await agent.run(…)` and `agent.run_sync(…)` alike. Everything a model or its code wrote is escaped.
    """

    def __init__(self, *, thinking: bool = True, code: bool = True, outputs: bool = True) -> None:
        """Each part can be switched off.

        Args:
            thinking: what the model says and thinks on its way.
            code: the code it runs.
            outputs: what the code prints and shows, and calls of tools.
        """
        try:
            from IPython.display import HTML, display  # pyright: ignore[reportUnknownVariableType]
        except ImportError as error:
            msg = 'JupyterView needs IPython, which every notebook has: pip install ipython'
            raise ImportError(msg) from error
        self._page = cast('Callable[[str], object]', HTML)
        self._display = cast('Callable[..., _Handle | None]', display)
        self._thinking, self._code, self._outputs = thinking, code, outputs
        self._panels: dict[str, _Panel] = {}

    def __call__(self, event: Event) -> None:
        """Show it."""
        panel = self._panels.setdefault(event.run, _Panel())
        self._take(event, panel)
        growing = event.kind in ('text', 'thinking', 'output', 'tool_logged')
        if not growing or panel.drawn is None or event.at - panel.drawn >= PAUSE:
            self._draw(panel, event.at)
        if event.kind in ('run_finished', 'run_failed'):
            del self._panels[event.run]

    def _draw(self, panel: _Panel, at: datetime) -> None:
        page = self._page(panel.html())
        if panel.handle is None:
            panel.handle = self._display(page, display_id=True)
        else:
            panel.handle.update(page)
        panel.drawn = at

    def _take(self, event: Event, panel: _Panel) -> None:
        match event.kind:
            case 'run_started':
                _header(event, panel)
            case 'model_requested':
                panel.prose = Prose()
            case 'text' | 'thinking' | 'model_replied' if self._thinking:
                self._say(event, panel)
            case 'code' if self._code:
                panel.settle()
                panel.add(event.text, f'{_MONO};border-left:3px solid #4a90d9;padding-left:0.6em')
            case 'output' if self._outputs:
                room = max(0, MAX_TEXT - len(panel.live))
                panel.grow(event.text[:room], _MONO)
            case 'cell_finished' if self._outputs:
                _cell(event, panel)
            case 'tool_returned' if self._outputs:
                _tool(event, panel)
            case 'answer' | 'question' | 'notice' | 'approval_asked':
                panel.settle()
                if panel.blocks and panel.blocks[-1] == _block(event.text, _SAID):  # it was said word by word
                    panel.blocks.pop()
                panel.add(event.text, 'white-space:pre-wrap;font-weight:bold;margin:0.5em 0')
            case 'retry' | 'hook_failed' | 'compacted':
                panel.settle()
                panel.add(one_line(event.text, 300), 'color:#a60')
            case 'run_finished':
                _footer(event, panel)
            case 'run_failed':
                panel.settle()
                panel.add(f'failed: {event.text[:2000]}', f'{_MONO};color:#c00')
            case _:
                pass

    def _say(self, event: Event, panel: _Panel) -> None:
        if event.kind == 'thinking':
            panel.grow(event.text, f'{_SAID};font-style:italic')
        elif event.kind == 'model_replied':
            panel.grow(panel.prose.finish(), _SAID)
            panel.settle()
        elif isinstance(event.data, Delta):
            panel.grow(panel.prose.feed(event.data.text), _SAID)


def _header(event: Event, panel: _Panel) -> None:
    if isinstance(event.data, Model):
        panel.add(f'{event.agent} · {event.data.name}', 'font-weight:bold')
        if event.data.traits.scripted:
            panel.add(SCRIPTED, 'font-weight:bold;color:#a60')


def _cell(event: Event, panel: _Panel) -> None:
    panel.settle()
    if not isinstance(event.data, Cell):
        return
    cell = event.data
    answered = bool(cell.calls) and cell.calls[-1].name == 'final_answer'
    if cell.text is not None and not answered and not cell.displays:
        panel.add(cell.text, _MONO)
    for display in cell.displays:
        panel.add_html(_rich(display))
    if cell.error is not None and not is_question(cell.error.message):
        panel.add(cell.error.traceback.strip() or str(cell.error), f'{_MONO};color:#c00')


def _tool(event: Event, panel: _Panel) -> None:
    panel.settle()
    if isinstance(event.data, ToolCall) and not is_question(event.data.error):
        record = event.data
        arguments = ', '.join(f'{name}={one_line(repr(value), 60)}' for name, value in (record.arguments or {}).items())
        result = record.result if record.ok else f'failed: {record.error}'
        panel.add(one_line(f'{record.name}({arguments}) → {result}', 300), f'{_MONO};color:#369')


def _footer(event: Event, panel: _Panel) -> None:
    panel.settle()
    if isinstance(event.data, Result):
        result = cast('Result[object]', event.data)
        if result.summary:
            panel.add(result.summary, 'white-space:pre-wrap')
        usage = result.usage
        cost = '' if usage.cost is None else f' · {money(usage.cost)}'
        text = f'{result.ended} · {len(result.steps)} steps · {result.seconds:.1f} s · {usage.tokens:,} tokens{cost}'
        panel.add(text, 'opacity:0.7;font-size:90%')


def _block(text: str, style: str) -> str:
    cut = '…' if len(text) > MAX_TEXT else ''
    return f'<div style="{style}">{escape(neutral(text[:MAX_TEXT]))}{cut}</div>'


def _rich(display: Display) -> str:
    """An image as an image, a page in a frame of its own, everything else as text."""
    mime, data = display.mime, display.data
    if mime in _IMAGES:
        encoded = base64.b64encode(data.encode('utf-8', 'replace') if isinstance(data, str) else data).decode('ascii')
        return f'<img src="data:{mime};base64,{encoded}" style="max-width:100%">'
    text = data if isinstance(data, str) else f'({mime}, {len(data):,} bytes)'
    if mime != 'text/html':
        return _block(text, _MONO)
    page = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">{text[:MAX_TEXT]}'
    return f'<iframe sandbox="" srcdoc="{escape(page)}" style="width:100%;border:0"></iframe>'
