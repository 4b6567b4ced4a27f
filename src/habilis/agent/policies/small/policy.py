"""What helps a small model: the protocol repeated where it was read last, less predictable retries, a fresh start."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files

from habilis.agent.policies.contract import History, SeenCell, SeenReply, Verdict
from habilis.agent.policies.general import GeneralPolicy

STUCK = 2
"""After this many failed cells in a row the model is repeating itself."""

RETRY_TEMPERATURE = 0.6
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
def _prompt(name: str) -> str:
    return files('habilis.agent.policies.small').joinpath('prompts', f'{name}.md').read_text(encoding='utf-8').strip()


class SmallPolicy(GeneralPolicy):
    """The general policy, and more for models that copy, forget the protocol and go in circles."""

    def imports(self) -> Mapping[str, str]:
        """The names of the standard library that are forgotten most."""
        return IMPORTS

    def task_note(self, history: History, *, can_stop: bool) -> str:
        """The tools and the protocol once more: a small model does what it read last. In a talk that would be code.

        Not the helpers: few tasks need them, and the model would define them, or call them without need.
        """
        if history.is_talk and can_stop:
            return ''
        protocol = _prompt('protocol' if can_stop else 'protocol_without_stop')
        tools = [f'- {name}{signature}' for name, signature in history.tools.items() if name not in history.helpers]
        if not tools:
            return protocol
        listed = '\n'.join(tools)
        return f'{_prompt("tools").replace("{tools}", listed)}\n\n{protocol}'

    def temperature(self, history: History) -> float | None:
        """Higher after a failure that would otherwise be repeated word for word."""
        last = history.turns[-1][0] if history.turns else None
        unusable = isinstance(last, SeenReply) and last.form in ('empty', 'repeating')
        is_stuck = history.failures() >= STUCK or unusable or _repeats(history.cells) or _repeats_reply(history)
        return RETRY_TEMPERATURE if is_stuck else None

    def may_ask_people(self) -> bool:
        """No: a small model would ask instead of working."""
        return False

    def memory_tokens(self) -> int:
        """A few lines: a small model reads slowly, and is easily distracted."""
        return MEMORY_TOKENS

    def after_reply(self, reply: SeenReply, history: History) -> Verdict:
        """As for every model, but an answer without any tool call is questioned once. A model that repeats a reply that
        could not be used copies what it sees: it starts afresh."""
        if reply.is_answer:
            return self._question_answer(history)
        verdict = super().after_reply(reply, history)
        is_repeated = bool(history.turns) and history.turns[-1][0] == reply and bool(reply.text)
        return replace(verdict, forget='steps') if is_repeated else verdict

    def after_cell(self, cell: SeenCell, history: History) -> Verdict:
        """As for every model; a failure that repeats is forgotten, and a result is followed by what to do with it."""
        if cell.is_answer:
            return Verdict() if cell.calls else self._question_answer(history)
        verdict = super().after_cell(cell, history)
        if cell.cell.error is not None:
            return self._after_failure(cell, history, verdict)
        if _repeats([*history.cells, cell]):
            return replace(verdict, note=_join(verdict.note, _prompt('repeated')))
        shown = cell.cell.stdout.strip() or cell.cell.text
        if shown and cell.can_stop and not verdict.note:
            return replace(verdict, note=_prompt('answer_talk' if history.is_talk else 'answer'))
        return verdict

    def _question_answer(self, history: History) -> Verdict:
        """A small model invents the data it should ask a tool for. Nothing can be repeated: no tool was called."""
        tools = [name for name in history.tools if name not in history.found_tools | history.helpers]
        if history.is_talk or not tools or history.has_called_tools or history.has_refused:
            return Verdict()
        return Verdict(note=_prompt('no_tool_called').replace('{tools}', ', '.join(tools)), refuse=True)

    def _after_failure(self, cell: SeenCell, history: History, verdict: Verdict) -> Verdict:
        """A small model copies the code it sees, also the line that fails: after some failures it starts afresh."""
        failures = history.failures() + 1
        if failures % STUCK:
            return verdict
        note = '' if failures % (2 * STUCK) == 0 else _start_over_note(cell)
        return Verdict(note=note, forget='steps')


def _repeats(cells: list[SeenCell]) -> bool:
    """Whether the last two cells are the same code with the same output."""
    if len(cells) < 2:
        return False
    one, other = cells[-2:]
    return (one.code, one.cell.stdout, one.cell.text) == (other.code, other.cell.stdout, other.cell.text)


def _repeats_reply(history: History) -> bool:
    """Whether the last two replies could not be used, and are the same."""
    seen = [seen for seen, _ in history.turns[-2:]]
    return len(seen) == 2 and isinstance(seen[0], SeenReply) and seen[0] == seen[1]


def _start_over_note(cell: SeenCell) -> str:
    error, lines = cell.cell.error, cell.code.split('\n')
    number = error.line if error is not None and error.line else 0
    line = lines[number - 1].strip() if 0 < number <= len(lines) else 'your code'
    return _prompt('start_over').replace('{error}', str(error)).replace('{line}', line)


def _join(*notes: str) -> str:
    return '\n'.join(note for note in notes if note)
