"""A run in a terminal: what the model says, the code it writes, what comes of it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from habilis.agent.contract import Ended, Result, Step
from habilis.agent.hooks.prose import Prose
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import money
from habilis.core.events import Event, EventKind
from habilis.models.contract import Delta, Model, Usage
from habilis.sandbox.contract import Cell, ToolCall
from habilis.tools.contract import ApprovalRequest, GateCall

if TYPE_CHECKING:
    from rich.console import Console

SCRIPTED = 'SCRIPTED MODEL: replies come from a script'
MAX_OUTPUT = 20_000
"""Characters of one cell that are shown; the model and the sandbox have the rest."""

MAX_DIFF_LINES = 60
_MARKS = re.compile(r'[*_]{2}|`|\]\(|^(?:#+|[-*+]|\d+\.|\|) ', re.MULTILINE)
"""What Markdown would show differently."""

_ENDED: Mapping[Ended, str] = {
    'answer': 'done',
    'question': 'waiting for an answer',
    'approval': 'waiting for an approval',
}
_DIFF_STYLES = {'+': 'green', '-': 'red', '@': 'cyan'}


@dataclass
class _Scene:
    """What is known of one run."""

    prose: Prose = field(default_factory=Prose)
    thinking: bool = False
    output: int = 0
    acted: bool = False
    """Whether something was done in this step, so that what the model gets back has been seen already."""


class TerminalView:
    """Shows a run while it goes on. Without a terminal it writes the same as plain text."""

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
    ) -> None:
        """Each part can be switched off.

        Args:
            console: where to write; stdout by default.
            thinking: what the model says and thinks on its way.
            code: the code it runs.
            outputs: what the code prints, its value and its errors.
            tools: calls of tools, with arguments and results.
            markdown: answers rendered, where there is a terminal.
            quiet: nothing but the answer.
        """
        from rich.console import Console

        from habilis.agent.hooks.screen import Screen

        self._screen = Screen(console or Console(highlight=False))
        self._markdown = markdown
        self._scenes: dict[str, _Scene] = {}
        self._speaker = ''
        self._show = self._shown(thinking=thinking, code=code, outputs=outputs, tools=tools, quiet=quiet)

    def __call__(self, event: Event) -> None:
        """Show it."""
        show = self._show.get(event.kind)
        if show is None:
            return
        scene = self._scenes.setdefault(event.run, _Scene())
        if event.run != self._speaker:
            if len(self._scenes) > 1:  # several at once, or one after the other: say who this is
                self._screen.line(f'── {one_line(event.agent, 60)} ──', 'dim')
            self._speaker = event.run
        show(event, scene)
        if event.kind in ('run_finished', 'run_failed'):
            self._scenes[event.run] = _Scene()

    @property
    def has_open_line(self) -> bool:
        """Whether the cursor is in the middle of a line."""
        return self._screen.has_open_line

    def end_line(self) -> None:
        """End a line that was begun, for whoever writes next to the same terminal."""
        self._screen.new_line()

    def _shown(
        self, *, thinking: bool, code: bool, outputs: bool, tools: bool, quiet: bool
    ) -> Mapping[EventKind, 'Callable[[Event, _Scene], None]']:
        shown: dict[EventKind, Callable[[Event, _Scene], None]] = {
            'run_started': self._scripted,
            'answer': self._answer,
            'run_failed': self._failed,
            'question': self._question,
        }
        if quiet:
            return shown
        shown |= {
            'run_started': self._header,
            'step_started': self._step_started,
            'notice': self._notice,
            'approval_asked': self._approval,
            'approval_answered': self._approved,
            'compacted': self._aside,
            'retry': self._warning,
            'hook_failed': self._warning,
            'observation': self._observation,
            'step_finished': self._step_finished,
            'run_finished': self._footer,
        }
        if thinking:
            shown |= {
                'model_requested': self._requested,
                'text': self._text,
                'thinking': self._thinking,
                'model_replied': self._replied,
            }
        if code:
            shown['code'] = self._code
        if outputs:
            shown |= {'output': self._output, 'cell_finished': self._cell}
        if tools:
            shown |= {'tool_called': self._called, 'tool_returned': self._returned, 'tool_logged': self._logged}
        return shown

    # The model --------------------------------------------------------------------------------------------------------

    def _scripted(self, event: Event, _scene: _Scene) -> None:
        if isinstance(event.data, Model) and event.data.traits.scripted:
            self._screen.line(SCRIPTED, 'bold yellow')

    def _header(self, event: Event, scene: _Scene) -> None:
        if isinstance(event.data, Model):
            self._screen.line(f'{one_line(event.agent, 60)} · {one_line(event.data.name, 100)}', 'bold')
        self._scripted(event, scene)

    def _step_started(self, _event: Event, scene: _Scene) -> None:
        scene.acted = False

    def _requested(self, _event: Event, scene: _Scene) -> None:
        scene.prose, scene.thinking = Prose(), False

    def _thinking(self, event: Event, scene: _Scene) -> None:
        if not scene.thinking:
            self._screen.new_line()
            scene.thinking = True
        self._screen.write(event.text, 'dim italic')

    def _text(self, event: Event, scene: _Scene) -> None:
        if isinstance(event.data, Delta):  # of which the arguments of a call are code, shown later
            self._say(scene, scene.prose.feed(event.data.text))

    def _replied(self, _event: Event, scene: _Scene) -> None:
        self._say(scene, scene.prose.finish())
        self._screen.new_line()

    def _say(self, scene: _Scene, text: str) -> None:
        if text and scene.thinking:
            self._screen.new_line()
            scene.thinking = False
        self._screen.write(text, 'dim')

    # Code and tools ---------------------------------------------------------------------------------------------------

    def _code(self, event: Event, scene: _Scene) -> None:
        scene.output, scene.acted = 0, True
        self._screen.code(event.text)

    def _output(self, event: Event, scene: _Scene) -> None:
        room = MAX_OUTPUT - scene.output
        scene.output += len(event.text)
        if room > 0:
            self._screen.write(event.text[:room], 'yellow' if event.data == 'stderr' else '')
            if len(event.text) >= room:
                self._screen.line('… more was printed than is shown here', 'dim')

    def _cell(self, event: Event, scene: _Scene) -> None:
        scene.acted = True
        if not isinstance(event.data, Cell):
            return
        cell = event.data
        answered = bool(cell.calls) and cell.calls[-1].name == 'final_answer'
        if cell.text is not None and not answered:
            self._screen.line(cell.text[:MAX_OUTPUT], 'cyan')
        for display in cell.displays:
            self._screen.line(f'({display.mime}, {len(display.data):,} long)', 'dim')
        for file in cell.files:
            self._screen.line(f'{file.path} ({file.change}, {file.size:,} bytes)', 'dim')
        if cell.error is not None and not is_question(cell.error.message):
            where = f' (line {cell.error.line})' if cell.error.line else ''
            self._screen.line(f'{one_line(str(cell.error), 500)}{where}', 'red')
        self._screen.new_line()

    def _called(self, event: Event, scene: _Scene) -> None:
        scene.acted = True
        arguments: Mapping[str, object] = event.data.arguments if isinstance(event.data, GateCall) else {}
        written = ', '.join(f'{name}={_short(value)}' for name, value in arguments.items())
        self._one_line(f'→ {event.text}({written})', 'blue')

    def _returned(self, event: Event, _scene: _Scene) -> None:
        if isinstance(event.data, ToolCall):
            record = event.data
            if record.ok:
                self._one_line(f'← {record.name}: {record.result} ({record.seconds:.2f} s)', 'blue')
            elif not is_question(record.error):
                self._one_line(f'← {record.name} failed: {record.error} ({record.seconds:.2f} s)', 'red')

    def _logged(self, event: Event, _scene: _Scene) -> None:
        tool = f'{event.data.tool}: ' if isinstance(event.data, GateCall) else ''
        self._one_line(f'  {tool}{event.text}', 'dim')

    def _one_line(self, text: str, style: str) -> None:
        indent = text[: len(text) - len(text.lstrip())]
        self._screen.line(indent + one_line(text, max(20, self._screen.width - len(indent))), style)

    # People -----------------------------------------------------------------------------------------------------------

    def _approval(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(f'approval needed: {event.text}', 'bold magenta')
        diff = event.data.diff.splitlines() if isinstance(event.data, ApprovalRequest) else []
        for line in diff[:MAX_DIFF_LINES]:
            self._screen.line(line, _DIFF_STYLES.get(line[:1], 'dim'))
        if len(diff) > MAX_DIFF_LINES:
            self._screen.line(f'… and {len(diff) - MAX_DIFF_LINES:,} more lines', 'dim')

    def _approved(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(f'approved: {one_line(event.text, 100)}', 'magenta')

    def _question(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(f'question: {event.text}', 'bold magenta')

    def _notice(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(f'notice: {event.text}', 'magenta')

    # The rest ---------------------------------------------------------------------------------------------------------

    def _aside(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(one_line(event.text, 300), 'dim')

    def _warning(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(f'{event.kind.replace("_", " ")}: {one_line(event.text, 300)}', 'yellow')

    def _observation(self, event: Event, scene: _Scene) -> None:
        if not scene.acted:
            self._screen.line(f'(told the model: {one_line(event.text, 200)})', 'dim')

    def _step_finished(self, event: Event, _scene: _Scene) -> None:
        if isinstance(event.data, Step):
            step = event.data
            parts = [f'step {step.number}', f'{step.seconds:.1f} s', f'model {step.reply.usage.seconds:.1f} s']
            if step.cell is not None:
                parts.append(f'code {step.cell.seconds:.2f} s')
            self._screen.line(' · '.join(parts), 'dim')

    def _answer(self, event: Event, scene: _Scene) -> None:
        """Once: an answer that was said word by word is not said again, unless it looks better as Markdown."""
        text = event.text
        rendered = isinstance(event.data, str) and self._markdown
        if _said(scene, text) and not (rendered and self._screen.renders_markdown and _MARKS.search(text)):
            return
        if rendered:
            self._screen.markdown(text)
        else:
            self._screen.line(text, 'bold')

    def _failed(self, event: Event, _scene: _Scene) -> None:
        self._screen.line(f'failed: {one_line(event.text, 500)}', 'bold red')

    def _footer(self, event: Event, scene: _Scene) -> None:
        if isinstance(event.data, Result):
            result = cast('Result[object]', event.data)
            if result.summary and not _said(scene, result.summary):
                self._screen.line(result.summary)
            steps = f'{len(result.steps)} step{"" if len(result.steps) == 1 else "s"}'
            ended = _ENDED.get(result.ended, f'stopped: {result.ended}')
            parts = [ended, steps, f'{result.seconds:.1f} s', *_used(result.usage)]
            self._screen.line(' · '.join(parts), 'bold green' if result.ended == 'answer' else 'bold yellow')


def _used(usage: Usage) -> list[str]:
    tokens = f'{usage.tokens:,} tokens ({usage.input_tokens:,} in, {usage.output_tokens:,} out)'
    return [tokens, *([] if usage.cost is None else [money(usage.cost)])]


def _short(value: object) -> str:
    return one_line(repr(value), 60)


def _said(scene: _Scene, text: str) -> bool:
    return bool(text.strip()) and scene.prose.shown.strip() == text.strip()
