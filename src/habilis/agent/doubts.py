"""Answers that were made up, and what to say about them. A doubt is raised once: whoever insists is believed. Only what
is plain to see is said again: a tool that the user wants to be used and that was not, one row that stands for all, and
spaces that nobody wants."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from habilis.agent.lifting import lift_table
from habilis.agent.output import as_text, converted
from habilis.agent.picking import Picking
from habilis.agent.prompt import prompt_file
from habilis.agent.signs import (
    answered_name,
    answers_in_loop,
    compares_with,
    guessed,
    misquoted,
    quantity_left_out,
    stops_at_first,
)
from habilis.agent.tool_use import asked_once, left_out, unused
from habilis.tools import CallRecord

_ROUNDED = re.compile(r'round\w*\s+(?:\w+\s+)?to\s+(?:the\s+nearest\s+)?(\d+)\s+(?:decimal|digit|place)', re.IGNORECASE)
_REMINDERS = 3
"""Of what was not asked."""

_AGAIN = 2
"""Times that one row may be taken for all, or that the form is wrong."""

_AT_LEAST = re.compile(r'\b(?:(\w{1,9}) or more|at least (\w{1,9}))\b', re.IGNORECASE)
_NUMBERS = {word: number for number, word in enumerate('two three four five six seven eight nine ten'.split(), start=2)}
_OF_ALL = re.compile(r'\b(?:how many|how much|total|sum|average|mean|altogether|all)\b', re.IGNORECASE)
_NO_SPACES = re.compile(r'\b(?:without|no)\s+(?:any\s+)?spaces\b', re.IGNORECASE)

_WHOLE = re.compile(r'\b(?:round|whole|full years|nearest|truncate|text|string|digits)', re.IGNORECASE)
_ALPHABETICAL = re.compile(r'\balphabetical\b', re.IGNORECASE)


@dataclass(frozen=True)
class Doubt:
    """What is wrong with an answer."""

    text: str
    detail: bool = False
    """The way to it was right: only its last step is to be done again."""


class Doubts:
    """Those of one run. A `small` model is doubted more: it works in its head, and invents what tools say."""

    def __init__(self, task: str, *, small: bool, texts: Iterable[str] = ()) -> None:
        table = lift_table(task)
        self._task = task
        self._question = task.replace(table.strip(), '') if table else task
        self._picking = Picking(self._question, '\n'.join([table, *texts]))
        self._small = small
        self._answer_doubted = False
        self._said: Counter[str] = Counter()
        self._told_to_compute = False

    def about_answer(
        self,
        code: str,
        value: object,
        *,
        seen: str,
        tools: Mapping[str, str],
        calls: Sequence[CallRecord],
        refusal: str = '',
    ) -> Doubt | None:
        """What is wrong with an answer that code has given; None if nothing is, or if it was doubted before.

        `tools` are the signatures of the tools, by name; `calls` those that were made; `refusal` is why the answer
        before was not taken.
        """
        if self._small and (doubt := self._plain_to_see(code, value, tools, calls)):
            return doubt
        if self._answer_doubted:
            return None
        if (number := guessed(code, seen)) is not None:
            doubt = Doubt(prompt_file('nudge_guessed').replace('{number}', number))
        elif self._small:
            doubt = self._careless(code) or self._asked_once(calls) or self._unlikely(code, value, refusal)
        else:
            doubt = None
        self._answer_doubted = doubt is not None
        return doubt

    def _plain_to_see(
        self, code: str, value: object, tools: Mapping[str, str], calls: Sequence[CallRecord]
    ) -> Doubt | None:
        looks: Mapping[str, tuple[int, Callable[[], Doubt | None]]] = {
            'calls': (_REMINDERS, lambda: self._not_asked(tools, calls)),
            'rows': (_AGAIN, lambda: self._one_for_all(code)),
            'spaces': (_AGAIN, lambda: self._spaces(value)),
        }
        for name, (times, look) in looks.items():
            if self._said[name] < times and (doubt := look()):
                self._said[name] += 1
                return doubt
        return None

    def _not_asked(self, tools: Mapping[str, str], calls: Sequence[CallRecord]) -> Doubt | None:
        if name := unused(self._task, tools, calls):
            return Doubt(prompt_file('nudge_unused').replace('{tool}', name).replace('{signature}', tools[name]))
        if partly := left_out(self._task, calls):
            listed, missing = (', '.join(names) for names in partly)
            return Doubt(prompt_file('nudge_left_out').replace('{listed}', listed).replace('{missing}', missing))
        return None

    def _one_for_all(self, code: str) -> Doubt | None:
        """What was picked out is not shown again: it would be copied. The code is, if it can be mended."""
        compared = self._picking.found(code)
        if not compared:
            return None
        nudge = prompt_file('nudge_picked').replace('{compared}', compared[0])
        mended = self._picking.mended(code)
        return Doubt(nudge) if mended is None else Doubt(_with_code(nudge, mended), detail=True)

    def _spaces(self, value: object) -> Doubt | None:
        if isinstance(value, str) and ' ' in value.strip() and _NO_SPACES.search(self._question):
            return Doubt(prompt_file('nudge_spaces').replace('{value}', as_text(value, repr)))
        return None

    def _asked_once(self, calls: Sequence[CallRecord]) -> Doubt | None:
        if (once := asked_once(self._task, calls)) is None:
            return None
        word, tool = once
        return Doubt(prompt_file('nudge_asked_once').replace('{word}', word).replace('{tool}', tool))

    def _careless(self, code: str) -> Doubt | None:
        """The first thing that a loop finds, data that was not copied as it stands, numbers that were passed over."""
        if answers_in_loop(code):
            return Doubt(prompt_file('nudge_loop'))
        if _OF_ALL.search(self._question) and stops_at_first(code):
            return Doubt(prompt_file('nudge_first'))
        if wrong := misquoted(code, self._task):
            return Doubt(prompt_file('nudge_misquoted').replace('{text}', wrong))
        if partly := quantity_left_out(code, self._question):
            words, missing = partly
            nudge = prompt_file('nudge_quantity').replace('{words}', words).replace('{number}', missing)
            return Doubt(nudge)
        if (asked := self._least()) and not compares_with(code, number := asked[1]):
            nudge = prompt_file('nudge_at_least').replace('{words}', asked[0])
            return Doubt(nudge.replace('{number}', str(number)))
        return None

    def _least(self) -> tuple[str, int] | None:
        """How many of something there must be, in the words of the task, and as a number."""
        for found in _AT_LEAST.finditer(self._question):
            word = (found[1] or found[2]).casefold()
            number = int(word) if word.isdecimal() else _NUMBERS.get(word, 0)
            if number > 1:
                return found[0], number
        return None

    def _unlikely(self, code: str, value: object, refusal: str) -> Doubt | None:
        """Nothing where something was asked for, a number in place of it, or another form than was asked for."""
        if not isinstance(value, bool) and not value:
            return Doubt(prompt_file('nudge_nothing').replace('{value}', as_text(value, repr)))
        if (number := converted(refusal, value)) and not _WHOLE.search(self._task):
            return Doubt(prompt_file('nudge_converted').replace('{number}', number))
        asked = _ROUNDED.search(self._task)
        if asked and isinstance(value, float) and round(value, int(asked[1])) != value:
            nudge = prompt_file('nudge_rounding').replace('{digits}', asked[1])
            return _detail(nudge, code, f'round({{}}, {asked[1]})')
        if _ALPHABETICAL.search(self._task) and isinstance(value, list):
            words = [item for item in cast('list[object]', value) if isinstance(item, str)]
            in_order = words == sorted(words, key=str.casefold)
            return None if in_order else _detail(prompt_file('nudge_order'), code, 'sorted({})')
        return None

    def about_words(self, text: str, *, worked: bool) -> str | None:
        """What is wrong with an answer in words: a small model gives a number without having run anything."""
        if not self._small or worked or self._told_to_compute or not any(letter.isdigit() for letter in text):
            return None
        self._told_to_compute = True
        return prompt_file('nudge_compute')


def _detail(nudge: str, code: str, mended: str) -> Doubt:
    """With the very code that mends it, if the answer is in a variable: told in words only, some rewrite the rest."""
    name = answered_name(code)
    if name is not None:
        nudge = _with_code(nudge, f'final_answer({mended.format(name)})')
    return Doubt(nudge, detail=True)


def _with_code(nudge: str, code: str) -> str:
    return f'{nudge} If nothing else is wrong, reply with this:\n```python\n{code}\n```'
