"""Shows a run in a terminal: what the model writes, the code, its output and the answer."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from habilis.agent.contract import Ended, Result, Step
from habilis.agent.events import (
    AgentEvent,
    AnswerEvent,
    AnswerRefused,
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalUsed,
    CellFinished,
    CodeEvent,
    CompactedEvent,
    Event,
    FileAttached,
    HookFailed,
    ModelReplied,
    ModelRequested,
    NoticeEvent,
    ObservationEvent,
    OutputEvent,
    QuestionEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TextEvent,
    ThinkingEvent,
    ToolCalled,
    ToolLogged,
    ToolReturned,
)
from habilis.agent.hooks.inner_runs import InnerRuns
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.reply_stream import MarkdownBlocks, Piece, ReplyStream
from habilis.agent.hooks.sanitize import escape_controls, one_line
from habilis.agent.hooks.tokens import format_cost
from habilis.core.previews import shorten
from habilis.models.contract import Usage
from habilis.sandbox.contract import Cell, Display, Stream, ToolCall
from habilis.sandbox.guest.hints import hint_in
from habilis.tools.contract import ApprovalRequest

if TYPE_CHECKING:
    from rich.console import Console

SCRIPTED = 'SCRIPTED MODEL: replies come from a script'
MAX_OUTPUT = 20_000
"""Maximum number of characters shown of a cell's output; the model and the sandbox have all of it."""

MAX_DIFF_ROWS = 60
_MARKUP = re.compile(r'[*_]{2}|`|\]\(|^(?:#+|[-*+]|\d+\.|\|) ', re.MULTILINE)

_ENDED: Mapping[Ended, str] = {
    'answer': 'done',
    'question': 'waiting for an answer',
    'approval': 'waiting for an approval',
}

_QUIET = frozenset[type[Event]]({RunStarted, AnswerEvent, RunFailed, QuestionEvent})
_PROGRESS = frozenset[type[Event]](
    {
        FileAttached,
        StepStarted,
        NoticeEvent,
        ApprovalAsked,
        ApprovalAnswered,
        ApprovalUsed,
        AnswerRefused,
        CompactedEvent,
        RetryEvent,
        HookFailed,
        ObservationEvent,
        StepFinished,
        RunFinished,
    }
)
_THINKING = frozenset[type[Event]]({ModelRequested, TextEvent, ThinkingEvent, ModelReplied})
_CODE = frozenset[type[Event]]({CodeEvent})
_OUTPUTS = frozenset[type[Event]]({OutputEvent, CellFinished})
_TOOLS = frozenset[type[Event]]({ToolCalled, ToolReturned, ToolLogged})


@dataclass
class _RunState:
    """What has been shown of one run."""

    reply: ReplyStream = field(default_factory=ReplyStream)
    blocks: MarkdownBlocks = field(default_factory=MarkdownBlocks)
    has_block: bool = False
    """Whether the last text was a block."""

    code: list[str] = field(default_factory=list[str])
    """Lines of code that were shown while they were written, and did not run yet."""

    open_code: str = ''
    """The line of code that is being written as an argument of a function call."""

    is_thinking: bool = False
    output_length: int = 0
    has_acted: bool = False
    """Whether code or a tool ran in this step: its observation was shown already."""


class TerminalView:
    """Shows a run while it is running. Writes the same as plain text if there is no terminal."""

    def __init__(
        self,
        console: 'Console | None' = None,
        *,
        thinking: bool = True,
        code: bool = True,
        outputs: bool = True,
        tools: bool = True,
        markdown: bool = True,
        quiet: bool = False,
        advice: Callable[[str], str] = hint_in,
    ) -> None:
        """Each part can be switched off.

        Args:
            console: where to write; stdout by default.
            thinking: the model's text and thinking before its answer.
            code: the code it runs.
            outputs: output, value and error of the code.
            tools: tool calls with arguments and results.
            markdown: render answers as Markdown on a terminal.
            quiet: show only the answer.
            advice: what to say below an error of the code, given its traceback.
        """
        from rich.console import Console

        from habilis.agent.hooks.console import SafeConsole

        self._console = SafeConsole(console or Console(highlight=False))
        self._markdown, self._quiet, self._advice = markdown, quiet, advice
        self._runs: dict[str, _RunState] = {}
        self._current_run = ''
        self._inner_runs = InnerRuns()
        parts = ((thinking, _THINKING), (code, _CODE), (outputs, _OUTPUTS), (tools, _TOOLS))
        self._shows_code = code
        self._shown = _QUIET if quiet else _QUIET.union(_PROGRESS, *(part for is_on, part in parts if is_on))

    def __call__(self, event: AgentEvent) -> None:
        """Show an event."""
        if event.parent:
            self._show_inner(event)
            return
        if type(event) not in self._shown:
            return
        state = self._runs.setdefault(event.run, _RunState())
        if event.run != self._current_run or not isinstance(event, TextEvent | ModelReplied):
            shown = self._runs.get(self._current_run, state)
            self._show_blocks(shown.blocks.finish(), shown)
        if event.run != self._current_run:
            if len(self._runs) > 1:  # several runs: name the agent whenever the run changes
                self._console.line(f'── {one_line(event.agent, 60)} ──', 'dim')
            self._current_run = event.run
        self._show(event, state)
        if isinstance(event, RunFinished | RunFailed):
            self._runs[event.run] = _RunState()
            self._inner_runs.forget(event.run)

    def _show_inner(self, event: AgentEvent) -> None:
        """Show an event of a run inside a tool: as one line, below what its parent has written so far."""
        line = None if self._quiet else self._inner_runs.line(event)
        if line is not None:
            self.end_line()
            self._line(*line)

    def has_shown(self, answer: AnswerEvent) -> bool:
        """Whether an answer was shown while the model wrote it."""
        state = self._runs.get(answer.run)
        return state is not None and state.reply.has_shown(answer.text)

    @property
    def has_open_line(self) -> bool:
        """Whether the cursor is in the middle of a line."""
        return self._console.has_open_line

    def end_line(self) -> None:
        """Print what is unfinished, and start a new line unless the cursor is at the start of one."""
        self._finish_reply(self._runs.get(self._current_run, _RunState()))

    def _show(self, event: AgentEvent, state: _RunState) -> None:
        match event:
            case StepStarted():
                state.has_acted = False
            case ModelRequested():
                state.reply, state.blocks, state.is_thinking = ReplyStream(), MarkdownBlocks(), False
                state.has_block = False
                state.code, state.open_code = [], ''
            case ThinkingEvent():
                self._show_thinking(event.text, state)
            case TextEvent(delta=delta):
                self._show_pieces(state.reply.feed(delta.text), state)
                self._show_written_code(state.reply.feed_arguments(delta.arguments), state)
                self._draft(state)
            case ModelReplied():
                self._finish_reply(state)
            case CodeEvent(code=code):
                state.output_length, state.has_acted = 0, True
                self._show_code(code, state)
            case OutputEvent(output=output, stream=stream):
                self._show_output(output, stream, state)
            case CellFinished(cell=cell, is_answer=is_answer):
                state.has_acted = True
                self._show_cell(cell, is_answer)
            case ToolCalled(call=call):
                state.has_acted = True
                arguments = ', '.join(
                    f'{name}={one_line(shorten(value, 60), 60)}' for name, value in call.arguments.items()
                )
                self._line(f'→ {call.tool}({arguments})', 'blue')
            case ToolReturned(call=call):
                self._show_result(call)
            case ToolLogged(call=call, line=line):
                self._line(f'{call.tool}: {line}', 'dim', indent='  ')
            case _:
                self._show_progress(event, state)

    def _show_progress(self, event: AgentEvent, state: _RunState) -> None:
        match event:
            case RunStarted():
                self._show_start(event)
            case FileAttached():
                self._console.line(f'attached {one_line(event.text, 300)}', 'dim')
            case ApprovalAsked(request=request):
                self._show_request(request)
            case ApprovalAnswered():
                self._console.line(f'approved: {event.text}', 'magenta')
            case ApprovalUsed():
                self._line(f'approved: {event.text}', 'dim', indent='  ')
            case QuestionEvent(question=question):
                self._console.line(f'question: {question}', 'bold magenta')
            case NoticeEvent(message=message):
                self._console.line(f'notice: {message}', 'magenta')
            case AnswerRefused(reason=reason):
                state.has_acted = True
                self._console.line(f'answer refused: {one_line(reason, 300)}', 'yellow')
            case CompactedEvent(message=message):
                self._console.line(one_line(message, 300), 'dim')
            case RetryEvent():
                self._console.line(f'retry: {one_line(event.text, 300)}', 'yellow')
            case HookFailed(message=message):
                self._console.line(f'hook failed: {one_line(message, 300)}', 'yellow')
            case ObservationEvent(observation=observation) if not state.has_acted:
                self._console.line(f'(told the model: {one_line(observation, 200)})', 'dim')
            case StepFinished(finished=step):
                self._show_step(step, state)
            case AnswerEvent():
                self._show_answer(event, state)
            case RunFinished(result=result):
                self._show_end(result, state)
            case RunFailed():
                self._console.line(f'failed: {one_line(event.text, 500)}', 'bold red')
            case _:
                pass

    # Model ------------------------------------------------------------------------------------------------------------

    def _show_start(self, event: RunStarted) -> None:
        if not self._quiet:
            self._console.line(f'{one_line(event.agent, 60)} · {one_line(event.model.name, 100)}', 'bold')
        if event.model.traits.scripted:
            self._console.line(SCRIPTED, 'bold yellow')

    def _show_thinking(self, text: str, state: _RunState) -> None:
        if not state.is_thinking:
            self._console.new_line()
            state.is_thinking = True
        self._console.write(text, 'dim italic')

    def _finish_reply(self, state: _RunState) -> None:
        self._show_pieces(state.reply.finish(), state)
        self._show_blocks(state.blocks.finish(), state)
        self._show_written_code('\n' if state.open_code else '', state)
        self._console.new_line()

    def _show_pieces(self, pieces: Sequence[Piece], state: _RunState) -> None:
        for kind, text in pieces:
            if kind == 'code':
                self._show_written_code(text, state)
            else:
                self._show_prose(text, state)

    def _show_prose(self, text: str, state: _RunState) -> None:
        if text and state.is_thinking:
            self._console.new_line()
            state.is_thinking = False
        if self._renders_markdown:
            self._show_blocks(state.blocks.feed(text), state)
        else:
            self._console.write(text)

    @property
    def _renders_markdown(self) -> bool:
        return self._markdown and self._console.renders_markdown

    def _show_blocks(self, blocks: Sequence[str], state: _RunState) -> None:
        """Show complete paragraphs, lists and tables, with blank lines between them."""
        for block in blocks:
            if state.has_block:
                self._console.line('')
            state.has_block = True
            if has_markup(block) or '\n' not in block.strip():
                self._console.markdown(block.strip('\n'))
            else:
                self._console.line(block.strip('\n'))

    def _draft(self, state: _RunState) -> None:
        """Show what is not complete above the status line."""
        if code := state.reply.open_code or state.open_code:
            if self._shows_code:
                self._console.draft_code(escape_controls(code), state.code)
        elif state.blocks.rest.strip():
            self._console.draft_markdown(state.blocks.rest)

    def _show_written_code(self, text: str, state: _RunState) -> None:
        """Show the complete lines of code that is being written."""
        if not text:
            return
        self._show_blocks(state.blocks.finish(), state)
        *lines, state.open_code = escape_controls(f'{state.open_code}{text}').split('\n')
        if not state.code:
            while lines and not lines[0].strip():  # code starts at its first line
                del lines[0]
        state.has_block = False
        if lines and self._shows_code:
            self._console.code(lines, state.code)
            state.code += lines

    # Code and tools ---------------------------------------------------------------------------------------------------

    def _show_code(self, code: str, state: _RunState) -> None:
        """Show the code that runs, unless it was shown while it was written."""
        lines = escape_controls(code).strip('\n').split('\n')
        shown = 0
        for line in filter(str.strip, lines):
            while shown < len(state.code) and not state.code[shown].strip():
                shown += 1
            if shown == len(state.code) or state.code[shown].strip() != line.strip():
                self._console.code(lines)
                state.code = []
                return
            shown += 1
        del state.code[:shown]

    def _show_output(self, text: str, stream: Stream, state: _RunState) -> None:
        remaining = MAX_OUTPUT - state.output_length
        state.output_length += len(text)
        if remaining > 0:
            self._console.write(text[:remaining], 'yellow' if stream == 'stderr' else '')
            if len(text) >= remaining:
                self._console.line('… more was printed than is shown here', 'dim')

    def _show_cell(self, cell: Cell, is_answer: bool) -> None:
        if cell.text is not None and not is_answer:
            self._console.line(cell.text[:MAX_OUTPUT], 'cyan')
        for display in cell.displays:
            if cell.text is None or display.mime.startswith('image/'):  # else the text says the same
                self._console.line(display_summary(display), 'dim')
        for file in cell.files:
            self._console.line(f'{file.path} ({file.change}, {file.size:,} bytes)', 'dim')
        if cell.error is not None and not is_question(cell.error.message):
            where = f' (line {cell.error.line})' if cell.error.line else ''
            self._console.line(f'{one_line(str(cell.error), 500)}{where}', 'red')
            if hint := self._advice(cell.error.traceback):
                self._console.line(hint, 'dim')
        self._console.new_line()

    def _show_result(self, call: ToolCall) -> None:
        if call.ok:
            self._line(f'← {call.tool}: {call.result} ({call.seconds:.2f} s)', 'blue')
        elif not is_question(call.error):
            self._line(f'← {call.tool} failed: {call.error} ({call.seconds:.2f} s)', 'red')

    def _line(self, text: str, style: str, indent: str = '') -> None:
        """Write one line, truncated to the width of the console."""
        self._console.line(indent + one_line(text, max(20, self._console.width - len(indent))), style)

    # Progress ---------------------------------------------------------------------------------------------------------

    def _show_request(self, request: ApprovalRequest) -> None:
        self._console.line(f'approval needed: {request.question}', 'bold magenta')
        self.show_diff(request.diff, MAX_DIFF_ROWS)

    def show_line(self, text: str) -> None:
        """Show a line that is no event of a run."""
        self._console.line(text, 'dim')

    def show_diff(self, diff: str, most: int | None = None, more: str = '') -> int:
        """Show a unified diff, or its first rows and how to see the rest (`more`). Returns the number of rows."""
        from habilis.agent.hooks.diff_view import diff_rows, folded

        shown = folded(diff_rows(diff, self._console.width), most, more)
        self._console.rows(shown)
        return len(shown)

    def _show_step(self, step: Step, state: _RunState) -> None:
        if not_run := [line for line in state.code if line.strip()]:
            self._console.line(f'(did not run: the last {len(not_run)} lines of the code)', 'dim')
            state.code = []
        parts = [f'step {step.number}', f'{step.seconds:.1f} s', f'model {step.reply.usage.seconds:.1f} s']
        if step.cell is not None:
            parts.append(f'code {step.cell.seconds:.2f} s')
        self._console.line(' · '.join(parts), 'dim')

    def _show_answer(self, event: AnswerEvent, state: _RunState) -> None:
        """Show the answer, unless it was shown while it was written."""
        text = event.text
        if state.reply.has_shown(text):
            return
        if isinstance(event.answer, str) and self._markdown:
            self._console.markdown(text)
        else:
            self._console.line(text, 'bold')

    def _show_end(self, result: Result[object], state: _RunState) -> None:
        if result.summary and not state.reply.has_shown(result.summary):
            self._console.line(result.summary)
        steps = f'{len(result.steps)} step{"" if len(result.steps) == 1 else "s"}'
        ended = _ENDED.get(result.ended, f'stopped: {result.ended}')
        parts = [ended, steps, f'{result.seconds:.1f} s', *_usage_parts(result.usage)]
        self._console.line(' · '.join(parts), 'bold green' if result.ended == 'answer' else 'bold yellow')


def _usage_parts(usage: Usage) -> list[str]:
    tokens = f'{usage.tokens:,} tokens ({usage.input_tokens:,} in, {usage.output_tokens:,} out)'
    return [tokens, *([] if usage.cost is None else [format_cost(usage.cost)])]


def display_summary(display: Display) -> str:
    """Type and size of a display that a terminal cannot show."""
    unit = 'bytes' if isinstance(display.data, bytes) else 'characters'
    return f'({display.mime}, {len(display.data):,} {unit})'


def has_markup(text: str) -> bool:
    """Whether the text looks different when rendered as Markdown."""
    return _MARKUP.search(text) is not None
