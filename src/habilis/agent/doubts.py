"""Answers that were made up, and what to say about them. A doubt is raised once: whoever insists is believed. Only what
the calls show is said again: a tool that the user wants to be used, and things that it was not asked about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from habilis.agent.hints import answered_name, answers_in_loop, guessed, misquoted, picked_out
from habilis.agent.lifting import lift_table
from habilis.agent.output import as_text, converted
from habilis.agent.prompt import prompt_file
from habilis.agent.tool_use import asked_once, left_out, unused
from habilis.tools import CallRecord

_ROUNDED = re.compile(r'round\w*\s+(?:\w+\s+)?to\s+(?:the\s+nearest\s+)?(\d+)\s+(?:decimal|digit|place)', re.IGNORECASE)
_REMINDERS = 3
"""Of what was not asked."""

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
        tables = lift_table(task).values()
        self._task = task
        self._data = '\n'.join([*tables, *texts])
        self._question = task
        for table in tables:
            self._question = self._question.replace(table.strip(), '')
        self._small = small
        self._answer_doubted = False
        self._reminded = 0
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
        if self._small and self._reminded < _REMINDERS and (doubt := self._not_asked(tools, calls)):
            self._reminded += 1
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

    def _not_asked(self, tools: Mapping[str, str], calls: Sequence[CallRecord]) -> Doubt | None:
        if name := unused(self._task, tools, calls):
            return Doubt(prompt_file('nudge_unused').replace('{tool}', name).replace('{signature}', tools[name]))
        if partly := left_out(self._task, calls):
            listed, missing = (', '.join(names) for names in partly)
            return Doubt(prompt_file('nudge_left_out').replace('{listed}', listed).replace('{missing}', missing))
        return None

    def _asked_once(self, calls: Sequence[CallRecord]) -> Doubt | None:
        if (once := asked_once(self._task, calls)) is None:
            return None
        word, tool = once
        return Doubt(prompt_file('nudge_asked_once').replace('{word}', word).replace('{tool}', tool))

    def _careless(self, code: str) -> Doubt | None:
        """The first thing that a loop finds, data that was not copied as it stands, or one row of it for all."""
        if answers_in_loop(code):
            return Doubt(prompt_file('nudge_loop'))
        if wrong := misquoted(code, self._task):
            return Doubt(prompt_file('nudge_misquoted').replace('{text}', wrong))
        if picked := picked_out(code, self._question, self._data):
            return Doubt(prompt_file('nudge_picked').replace('{text}', picked))
        return None

    def _unlikely(self, code: str, value: object, refusal: str) -> Doubt | None:
        """Nothing where something was asked for, a number in place of it, more decimals than were, or another order."""
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
        nudge += f' If nothing else is wrong, reply with this:\n```python\nfinal_answer({mended.format(name)})\n```'
    return Doubt(nudge, detail=True)
