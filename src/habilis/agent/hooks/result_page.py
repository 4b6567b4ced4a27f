"""What a notebook shows of a result that is the value of a cell."""

from collections.abc import Sequence
from typing import Protocol

from habilis.agent.hooks.html import block, cell_text, code_block, display_block, folded, page, value_block
from habilis.agent.hooks.notebook import was_shown
from habilis.models.contract import Reply, Usage
from habilis.sandbox.contract import Cell


class ShownStep(Protocol):
    """The parts of a step that are shown."""

    @property
    def reply(self) -> Reply: ...
    @property
    def code(self) -> str | None: ...
    @property
    def cell(self) -> Cell | None: ...


class ShownResult(Protocol):
    """The parts of a result that are shown."""

    @property
    def output(self) -> object: ...
    @property
    def ended(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def steps(self) -> Sequence[ShownStep]: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def seconds(self) -> float: ...
    @property
    def question(self) -> str | None: ...


def result_forms(result: ShownResult) -> dict[str, str]:
    """The forms of a result by MIME type: a page too, unless the notebook has just shown the run."""
    text = {'text/plain': repr(result)}
    return text if was_shown(result.run_id) else {**text, 'text/html': result_page(result)}


def result_page(result: ShownResult) -> str:
    """The answer and the images, and the steps on a click."""
    displays = [display for step in result.steps if step.cell for display in step.cell.displays]
    steps = [part for step in result.steps for part in _step_blocks(step)]
    is_answer = result.ended == 'answer'
    answer = value_block(result.output) if is_answer else block(result.question or '', 'font-weight:bold')
    usage = result.usage
    cost = '' if usage.cost is None else f' · ${usage.cost:.4g}'
    facts = f'{result.ended} · {len(result.steps)} steps · {result.seconds:.1f} s · {usage.tokens:,} tokens{cost}'
    return page([answer, *map(display_block, displays), folded(facts, steps)])


def _step_blocks(step: ShownStep) -> list[str]:
    code = [] if step.code is None else [code_block(step.code)]
    return [*code, *(cell_text(step.cell) if step.cell else ())] or [block(step.reply.text)]
