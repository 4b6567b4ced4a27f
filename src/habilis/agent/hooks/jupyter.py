"""Shows a run below a notebook cell and updates it while it is running."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import Protocol, cast

from habilis.agent.contract import Result
from habilis.agent.events import (
    AgentEvent,
    AnswerEvent,
    AnswerRefused,
    ApprovalAsked,
    CellFinished,
    CodeEvent,
    CompactedEvent,
    HookFailed,
    ModelReplied,
    ModelRequested,
    NoticeEvent,
    OutputEvent,
    QuestionEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TextEvent,
    ThinkingEvent,
    ToolLogged,
    ToolReturned,
)
from habilis.agent.hooks.prose_filter import ProseFilter
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import escape_controls, one_line
from habilis.agent.hooks.terminal import SCRIPTED
from habilis.agent.hooks.tokens import format_cost
from habilis.sandbox.contract import Cell, Display, ToolCall
from habilis.sandbox.previews import shorten

PAUSE = timedelta(seconds=0.1)
"""Minimum time between two updates for streamed text; everything else is shown at once."""

MAX_TEXT = 20_000
MAX_BLOCKS = 400
_IMAGES = frozenset({'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml'})

# A page made in the sandbox runs no scripts and loads nothing: a URL could leak data.
_CONTENT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_PROSE_STYLE = 'white-space:pre-wrap;opacity:0.7'
_CODE_STYLE = 'white-space:pre-wrap;overflow-wrap:anywhere;margin:0.3em 0;font-family:monospace'


class _Handle(Protocol):
    """What `IPython.display.display` returns: an output that can be updated."""

    def update(self, obj: object) -> None: ...


@dataclass
class _Panel:
    """The output of one run."""

    handle: _Handle | None = None
    blocks: list[str] = field(default_factory=list[str])
    prose: ProseFilter = field(default_factory=ProseFilter)
    live: str = ''
    """Text that is still being streamed: prose of the model or output of the code."""

    live_style: str = ''
    drawn_at: datetime | None = None

    def end_live(self) -> None:
        """Turn the streamed text into a block."""
        if self.live.strip():
            self.add(self.live.strip('\n'), self.live_style)
        self.live = ''

    def add(self, text: str, style: str = '') -> None:
        """Add a block of text, escaped."""
        self.add_html(_block(text, style))

    def add_html(self, html: str) -> None:
        """Add a block of safe HTML. If there are too many, one in the middle is dropped."""
        self.blocks.append(html)
        if len(self.blocks) > MAX_BLOCKS:
            del self.blocks[MAX_BLOCKS // 2]

    def stream(self, text: str, style: str) -> None:
        """Append streamed text."""
        if style != self.live_style:
            self.end_live()
        self.live, self.live_style = self.live + text, style

    def html(self) -> str:
        """The whole output."""
        live = _block(self.live, self.live_style) if self.live.strip() else ''
        return f'<div class="habilis">{"".join(self.blocks)}{live}</div>'


class JupyterView:
    """Shows each run in its own output below the cell: the model's text, code, output, images, answer, cost.

    Works with `await agent.run(…)` and `agent.run_sync(…)`. Everything a model or its code wrote is escaped.
    """

    def __init__(self, *, thinking: bool = True, code: bool = True, outputs: bool = True) -> None:
        """Each part can be switched off.

        Args:
            thinking: the model's text and thinking before its answer.
            code: the code it runs.
            outputs: output and displays of the code, and tool calls.
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

    def __call__(self, event: AgentEvent) -> None:
        """Show an event."""
        panel = self._panels.setdefault(event.run, _Panel())
        self._show(event, panel)
        is_streamed = isinstance(event, TextEvent | ThinkingEvent | OutputEvent | ToolLogged)
        if not is_streamed or panel.drawn_at is None or event.at - panel.drawn_at >= PAUSE:
            self._draw(panel, event.at)
        if isinstance(event, RunFinished | RunFailed):
            del self._panels[event.run]

    def _draw(self, panel: _Panel, at: datetime) -> None:
        page = self._page(panel.html())
        if panel.handle is None:
            panel.handle = self._display(page, display_id=True)
        else:
            panel.handle.update(page)
        panel.drawn_at = at

    def _show(self, event: AgentEvent, panel: _Panel) -> None:
        match event:
            case RunStarted():
                _add_header(event, panel)
            case ModelRequested():
                panel.prose = ProseFilter()
            case TextEvent() | ThinkingEvent() | ModelReplied() if self._thinking:
                _add_prose(event, panel)
            case CodeEvent(code=code) if self._code:
                panel.end_live()
                panel.add(code, f'{_CODE_STYLE};border-left:3px solid #4a90d9;padding-left:0.6em')
            case OutputEvent(output=output) if self._outputs:
                panel.stream(output[: max(0, MAX_TEXT - len(panel.live))], _CODE_STYLE)
            case CellFinished(cell=cell) if self._outputs:
                _add_cell(cell, panel)
            case ToolReturned(call=call) if self._outputs:
                _add_call(call, panel)
            case AnswerEvent() | QuestionEvent() | NoticeEvent() | ApprovalAsked():
                _add_message(event.text, panel)
            case RetryEvent() | HookFailed() | CompactedEvent() | AnswerRefused():
                panel.end_live()
                panel.add(one_line(event.text, 300), 'color:#a60')
            case RunFinished(result=result):
                _add_footer(result, panel)
            case RunFailed():
                panel.end_live()
                panel.add(f'failed: {event.text[:2000]}', f'{_CODE_STYLE};color:#c00')
            case _:
                pass


def _add_header(event: RunStarted, panel: _Panel) -> None:
    panel.add(f'{event.agent} · {event.model.name}', 'font-weight:bold')
    if event.model.traits.scripted:
        panel.add(SCRIPTED, 'font-weight:bold;color:#a60')


def _add_prose(event: TextEvent | ThinkingEvent | ModelReplied, panel: _Panel) -> None:
    match event:
        case TextEvent(delta=delta):
            panel.stream(panel.prose.feed(delta.text), _PROSE_STYLE)
        case ThinkingEvent(delta=delta):
            panel.stream(delta.thinking, f'{_PROSE_STYLE};font-style:italic')
        case ModelReplied():
            panel.stream(panel.prose.finish(), _PROSE_STYLE)
            panel.end_live()


def _add_message(text: str, panel: _Panel) -> None:
    panel.end_live()
    if panel.blocks and panel.blocks[-1] == _block(text, _PROSE_STYLE):  # the same text was streamed
        panel.blocks.pop()
    panel.add(text, 'white-space:pre-wrap;font-weight:bold;margin:0.5em 0')


def _add_cell(cell: Cell, panel: _Panel) -> None:
    panel.end_live()
    has_answer = bool(cell.calls) and cell.calls[-1].name == 'final_answer'
    if cell.text is not None and not has_answer and not cell.displays:
        panel.add(cell.text, _CODE_STYLE)
    for display in cell.displays:
        panel.add_html(_display_html(display))
    if cell.error is not None and not is_question(cell.error.message):
        panel.add(cell.error.traceback.strip() or str(cell.error), f'{_CODE_STYLE};color:#c00')


def _add_call(call: ToolCall, panel: _Panel) -> None:
    panel.end_live()
    if not is_question(call.error):
        arguments = ', '.join(
            f'{name}={one_line(shorten(value, 60), 60)}' for name, value in (call.arguments or {}).items()
        )
        result = call.result if call.ok else f'failed: {call.error}'
        panel.add(one_line(f'{call.name}({arguments}) → {result}', 300), f'{_CODE_STYLE};color:#369')


def _add_footer(result: Result[object], panel: _Panel) -> None:
    panel.end_live()
    if result.summary:
        panel.add(result.summary, 'white-space:pre-wrap')
    usage = result.usage
    cost = '' if usage.cost is None else f' · {format_cost(usage.cost)}'
    text = f'{result.ended} · {len(result.steps)} steps · {result.seconds:.1f} s · {usage.tokens:,} tokens{cost}'
    panel.add(text, 'opacity:0.7;font-size:90%')


def _block(text: str, style: str) -> str:
    ellipsis = '…' if len(text) > MAX_TEXT else ''
    return f'<div style="{style}">{escape(escape_controls(text[:MAX_TEXT]))}{ellipsis}</div>'


def _display_html(display: Display) -> str:
    """Images as images, HTML in a sandboxed frame, everything else as text."""
    mime, data = display.mime, display.data
    if mime in _IMAGES:
        encoded = base64.b64encode(data.encode('utf-8', 'replace') if isinstance(data, str) else data).decode('ascii')
        return f'<img src="data:{mime};base64,{encoded}" style="max-width:100%">'
    text = data if isinstance(data, str) else f'({mime}, {len(data):,} bytes)'
    if mime != 'text/html':
        return _block(text, _CODE_STYLE)
    page = f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_POLICY}">{text[:MAX_TEXT]}'
    return f'<iframe sandbox="" srcdoc="{escape(page)}" style="width:100%;border:0"></iframe>'
