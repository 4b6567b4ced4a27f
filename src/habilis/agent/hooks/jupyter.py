"""Shows a run below a notebook cell and updates it while it is running."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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
    ModelProgress,
    ModelReplied,
    ModelRequested,
    NoticeEvent,
    OutputEvent,
    QuestionEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    TextEvent,
    ThinkingEvent,
    ToolCalled,
    ToolLogged,
    ToolReturned,
)
from habilis.agent.hooks.html import (
    CODE_STYLE,
    MAX_TEXT,
    block,
    code_block,
    display_block,
    markdown_block,
    page,
    value_block,
)
from habilis.agent.hooks.notebook import mark_shown
from habilis.agent.hooks.prose_filter import ProseFilter
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.terminal import SCRIPTED
from habilis.agent.hooks.tokens import format_cost
from habilis.core.previews import shorten
from habilis.sandbox.contract import Cell, ToolCall

PAUSE = timedelta(seconds=0.1)
"""Minimum time between two updates for streamed text; everything else is shown at once."""

MAX_BLOCKS = 400
MAX_UPDATED = 200_000
"""Characters of HTML after which a run continues in another display: each update sends all of it again."""

_PROSE_STYLE = 'opacity:0.7'
_LIVE_STYLE = 'white-space:pre-wrap;opacity:0.7'
_THINKING_STYLE = f'{_LIVE_STYLE};font-style:italic'


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
    status: str = ''
    """What the run is doing now."""

    drawn_at: datetime | None = None

    def end_live(self) -> None:
        """Turn the streamed text into a block."""
        text, self.live = self.live.strip('\n'), ''
        if text.strip():
            self.add_html(_prose_block(text) if self.live_style == _LIVE_STYLE else block(text, self.live_style))

    def add(self, text: str, style: str = '') -> None:
        """Add a block of text, escaped."""
        self.add_html(block(text, style))

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
        live = block(self.live, self.live_style) if self.live.strip() else ''
        status = block(f'⏳ {self.status} …', 'opacity:0.7;font-size:90%') if self.status else ''
        return page((*self.blocks, live, status))


class JupyterView:
    """Shows each run in its own output below the cell: the model's text, code, output, images, answer, cost.

    Works with `await agent.run(…)` and `agent.run_sync(…)`. In a notebook, an agent without hooks has one by itself.
    Text of the model is shown as Markdown, without raw HTML and images; everything else it wrote is escaped.
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
        panel.status = _status(event, panel.status)
        self._show(event, panel)
        is_streamed = isinstance(event, TextEvent | ThinkingEvent | OutputEvent | ToolLogged)
        if not is_streamed or panel.drawn_at is None or event.at - panel.drawn_at >= PAUSE:
            self._draw(panel, event.at)
        if isinstance(event, RunFinished | RunFailed):
            del self._panels[event.run]
            mark_shown(event.run)

    def _draw(self, panel: _Panel, at: datetime) -> None:
        text = panel.html()
        if panel.handle is None:
            panel.handle = self._display(self._page(text), display_id=True)
        else:
            panel.handle.update(self._page(text))
        panel.drawn_at = at
        if not panel.live and len(text) > MAX_UPDATED:
            panel.handle, panel.blocks = None, []

    def _show(self, event: AgentEvent, panel: _Panel) -> None:
        match event:
            case RunStarted() | RunResumed():
                _add_header(event, panel)
            case ModelRequested():
                panel.prose = ProseFilter()
            case TextEvent() | ThinkingEvent() | ModelReplied() if self._thinking:
                _add_prose(event, panel)
            case CodeEvent(code=code) if self._code:
                panel.end_live()
                panel.add_html(code_block(code))
            case OutputEvent(output=output) if self._outputs:
                panel.stream(output[: max(0, MAX_TEXT - len(panel.live))], CODE_STYLE)
            case CellFinished(cell=cell, is_answer=is_answer) if self._outputs:
                _add_cell(cell, is_answer, panel)
            case ToolReturned(call=call) if self._outputs:
                _add_call(call, panel)
            case AnswerEvent(answer=answer):
                _add_answer(answer, panel)
            case QuestionEvent() | NoticeEvent() | ApprovalAsked():
                _add_message(event.text, panel)
            case RetryEvent() | HookFailed() | CompactedEvent() | AnswerRefused():
                panel.end_live()
                panel.add(one_line(event.text, 300), 'color:#a60')
            case RunFinished(result=result):
                _add_footer(result, panel)
            case RunFailed():
                panel.end_live()
                panel.add(f'failed: {event.text[:2000]}', f'{CODE_STYLE};color:#c00')
            case _:
                pass


def _status(event: AgentEvent, before: str) -> str:
    """What the run does after this event."""
    match event:
        case ModelRequested(model=model):
            return f'waiting for {model.name}'
        case ModelProgress():
            return event.text
        case TextEvent() | ThinkingEvent():
            return 'writing'
        case CodeEvent() | ToolReturned():
            return 'running the code'
        case ToolCalled(call=call):
            return f'waiting for {call.tool}'
        case ApprovalAsked():
            return 'waiting for approval'
        case RunFinished() | RunFailed():
            return ''
        case _:
            return before


def _add_header(event: RunStarted | RunResumed, panel: _Panel) -> None:
    panel.add(f'{event.agent} · {event.model.name}', 'font-weight:bold')
    if event.model.traits.scripted:
        panel.add(SCRIPTED, 'font-weight:bold;color:#a60')


def _add_prose(event: TextEvent | ThinkingEvent | ModelReplied, panel: _Panel) -> None:
    match event:
        case TextEvent(delta=delta):
            panel.stream(panel.prose.feed(delta.text), _LIVE_STYLE)
        case ThinkingEvent(delta=delta):
            panel.stream(delta.thinking, _THINKING_STYLE)
        case ModelReplied():
            panel.stream(panel.prose.finish(), _LIVE_STYLE)
            panel.end_live()


def _add_answer(answer: object, panel: _Panel) -> None:
    panel.end_live()
    if isinstance(answer, str) and panel.blocks and panel.blocks[-1] == _prose_block(answer.strip('\n')):
        panel.blocks.pop()  # the same text was streamed
    panel.add_html(f'<div style="margin:0.5em 0">{value_block(answer)}</div>')


def _add_message(text: str, panel: _Panel) -> None:
    panel.end_live()
    panel.add(text, 'white-space:pre-wrap;font-weight:bold;margin:0.5em 0')


def _prose_block(text: str) -> str:
    return markdown_block(text, _PROSE_STYLE)


def _add_cell(cell: Cell, is_answer: bool, panel: _Panel) -> None:
    panel.end_live()
    if cell.text is not None and not is_answer and not cell.displays:
        panel.add(cell.text, CODE_STYLE)
    for display in cell.displays:
        panel.add_html(display_block(display))
    if cell.error is not None and not is_question(cell.error.message):
        panel.add(cell.error.traceback.strip() or str(cell.error), f'{CODE_STYLE};color:#c00')


def _add_call(call: ToolCall, panel: _Panel) -> None:
    panel.end_live()
    if not is_question(call.error):
        arguments = ', '.join(
            f'{name}={one_line(shorten(value, 60), 60)}' for name, value in (call.arguments or {}).items()
        )
        result = call.result if call.ok else f'failed: {call.error}'
        panel.add(one_line(f'{call.tool}({arguments}) → {result}', 300), f'{CODE_STYLE};color:#369')


def _add_footer(result: Result[object], panel: _Panel) -> None:
    panel.end_live()
    if result.summary:
        panel.add(result.summary, 'white-space:pre-wrap')
    usage = result.usage
    cost = '' if usage.cost is None else f' · {format_cost(usage.cost)}'
    text = f'{result.ended} · {len(result.steps)} steps · {result.seconds:.1f} s · {usage.tokens:,} tokens{cost}'
    panel.add(text, 'opacity:0.7;font-size:90%')
