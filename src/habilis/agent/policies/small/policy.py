"""What helps a small model: the protocol repeated where it was read last, less predictable retries, a fresh start."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files

from habilis.agent.policies.contract import History, SeenCell, SeenReply, Verdict
from habilis.agent.policies.general import GeneralPolicy

STUCK = 2
"""After this many failed cells in a row the model is repeating itself."""

RETRY_TEMPERATURE = 0.6
TEMPERATURE_RISE = 0.2
"""For each further time that the model repeats what failed."""

MAX_TEMPERATURE = 1.0
MEMORY_TOKENS = 200

_MODULES = 'collections csv datetime io itertools json math os random re statistics string time'
IMPORTS: Mapping[str, str] = {
    **{module: module for module in _MODULES.split()},
    **dict.fromkeys(('Counter', 'defaultdict', 'deque'), 'collections'),
    **dict.fromkeys(('date', 'timedelta'), 'datetime'),
    **dict.fromkeys(('combinations', 'permutations'), 'itertools'),
    **dict.fromkeys(('ceil', 'floor', 'gcd', 'sqrt'), 'math'),
    'Decimal': 'decimal',
    'Fraction': 'fractions',
}
"""What small models use and forget to import. Each name costs tokens in every run: the prompt lists them."""


@cache
def _own_text(name: str) -> str | None:
    file = files('habilis.agent.policies.small').joinpath('prompts', f'{name}.md')
    return file.read_text(encoding='utf-8').strip() if file.is_file() else None


class SmallPolicy(GeneralPolicy):
    """The general policy, and more for models that copy, forget the protocol and go in circles."""

    def text(self, name: str) -> str:
        """A text of this folder, where there is one."""
        own = _own_text(name)
        return super().text(name) if own is None else own

    def imports(self) -> Mapping[str, str]:
        """The names of the standard library that are forgotten most."""
        return IMPORTS

    def task_note(self, history: History, *, can_stop: bool) -> str:
        """The tools and the protocol once more: a small model does what it read last. In a talk that would be code.

        Not the helpers: few tasks need them, and the model would define them, or call them without need.
        """
        if history.is_talk and can_stop:
            return ''
        protocol = self.text('protocol' if can_stop else 'protocol_without_stop')
        tools = [f'- {name}{signature}' for name, signature in history.tools.items() if name not in history.helpers]
        if not tools:
            return protocol
        listed = '\n'.join(tools)
        return f'{self.text("tools").replace("{tools}", listed)}\n\n{protocol}'

    def temperature(self, history: History) -> float | None:
        """Higher after a failure that would otherwise be repeated word for word, and still higher if it was."""
        if not history.turns:
            return None
        *earlier, last = (seen for seen, _ in history.turns)
        repeated = _repetitions(last, earlier)
        unusable = isinstance(last, SeenReply) and last.form in ('empty', 'repeating')
        if not (repeated or unusable or history.failures() >= STUCK or _repeats(history.cells)):
            return None
        return min(MAX_TEMPERATURE, RETRY_TEMPERATURE + TEMPERATURE_RISE * max(0, repeated - 1))

    def may_ask_people(self) -> bool:
        """No: a small model would ask instead of working."""
        return False

    def memory_tokens(self) -> int:
        """A few lines: a small model reads slowly, and is easily distracted."""
        return MEMORY_TOKENS

    def after_reply(self, reply: SeenReply, history: History) -> Verdict:
        """As for every model, but an answer without any tool call is questioned once. A model that repeats a reply that
        could not be used copies what it sees: it starts afresh, or at least does not see the copy."""
        if reply.is_answer:
            return self._question_answer(history)
        verdict = super().after_reply(reply, history)
        if not reply.text or not _repetitions(reply, [seen for seen, _ in history.turns]):
            return verdict
        if history.has_called_tools or history.turns[-1][0] != reply:
            return Verdict(forget='reply')
        return replace(verdict, forget='steps')

    def after_cell(self, cell: SeenCell, history: History) -> Verdict:
        """As for every model; a failure that repeats is forgotten, and a result is followed by what to do with it."""
        if cell.is_answer:
            return Verdict() if cell.calls else self._question_answer(history)
        verdict = super().after_cell(cell, history)
        if cell.cell.error is not None:
            return self._after_failure(cell, history, verdict)
        if _repeats([*history.cells, cell]):
            return replace(verdict, note=_join(verdict.note, self.text('repeated')))
        shown = cell.cell.stdout.strip() or cell.cell.text
        if shown and cell.can_stop and not verdict.note:
            return replace(verdict, note=self.text('answer_talk' if history.is_talk else 'answer'))
        return verdict

    def _question_answer(self, history: History) -> Verdict:
        """A small model invents the data it should ask a tool for. Nothing can be repeated: no tool was called."""
        tools = history.own_tools
        if history.is_talk or not tools or history.has_called_tools or history.has_refused:
            return Verdict()
        return Verdict(note=self.text('no_tool_called').replace('{tools}', ', '.join(tools)), refuse=True)

    def _after_failure(self, cell: SeenCell, history: History, verdict: Verdict) -> Verdict:
        """A small model copies the code it sees, also the line that fails: after some failures it starts afresh. Where
        it cannot, because a tool was called, or need not yet, it does not see the copy."""
        failures = history.failures() + 1
        is_copy = not cell.calls and _repetitions(cell, [seen for seen, _ in history.turns]) > 0
        if failures % STUCK or (is_copy and history.has_called_tools):
            return Verdict(forget='reply') if is_copy else verdict
        note = '' if failures % (2 * STUCK) == 0 else self._start_over_note(cell)
        return Verdict(note=note, forget='steps')

    def _start_over_note(self, cell: SeenCell) -> str:
        error, lines = cell.cell.error, cell.code.split('\n')
        number = error.line if error is not None and error.line else 0
        line = lines[number - 1].strip() if 0 < number <= len(lines) else 'your code'
        return self.text('start_over').replace('{error}', str(error)).replace('{line}', line)


def _repeats(cells: list[SeenCell]) -> bool:
    """Whether the last two cells are the same code with the same output."""
    if len(cells) < 2:
        return False
    one, other = cells[-2:]
    return (one.code, one.cell.stdout, one.cell.text) == (other.code, other.cell.stdout, other.cell.text)


def _repetitions(last: SeenReply | SeenCell, earlier: Iterable[SeenReply | SeenCell]) -> int:
    """How often what failed now has failed before in this run; 0 if it did not fail."""
    failed = _failed(last)
    return 0 if failed is None else sum(_failed(seen) == failed for seen in earlier)


def _failed(seen: SeenReply | SeenCell) -> str | None:
    """The code of a cell that failed, or the text of a reply that could not be used; None for others."""
    if isinstance(seen, SeenCell):
        return None if seen.cell.error is None else seen.code
    return None if seen.is_answer else seen.text


def _join(*notes: str) -> str:
    return '\n'.join(note for note in notes if note)
