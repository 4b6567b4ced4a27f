"""Answers that were made up, and what to say about them. Each doubt is raised once: whoever insists is believed."""

import re
from collections.abc import Collection, Iterable

from habilis.agent.hints import guessed
from habilis.agent.prompt import prompt_file


class Doubts:
    """Those of one run. A `small` model is doubted more: it works in its head, and invents what tools say."""

    def __init__(self, task: str, *, small: bool) -> None:
        self._words = frozenset(re.findall(r'\w+', task))
        self._small = small
        self._answer_doubted = False
        self._told_to_compute = False

    def about_answer(self, code: str, seen: str, *, tools: Iterable[str], called: Collection[str]) -> str | None:
        """What is wrong with an answer that code has given: a number nobody has seen, or a tool that was not called."""
        if self._answer_doubted:
            return None
        unused = next((name for name in tools if name in self._words and name not in called), None)
        if (number := guessed(code, seen)) is not None:
            doubt = prompt_file('nudge_guessed').replace('{number}', number)
        elif unused is not None and self._small:
            doubt = prompt_file('nudge_unused').replace('{tool}', unused)
        else:
            return None
        self._answer_doubted = True
        return doubt

    def about_words(self, text: str, *, worked: bool) -> str | None:
        """What is wrong with an answer in words: a small model gives a number without having run anything."""
        if not self._small or worked or self._told_to_compute or not any(letter.isdigit() for letter in text):
            return None
        self._told_to_compute = True
        return prompt_file('nudge_compute')
