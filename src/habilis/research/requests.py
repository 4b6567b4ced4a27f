"""Calls of the model: one question, one answer, recorded. No stage has a tool, so no stage needs an agent's loop."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

from habilis.agent.loop.reply_reading import read_reply
from habilis.flows import step
from habilis.journal import Paused, recording_scope
from habilis.models.contract import Message, Model, Options
from habilis.research.allowance import Allowance
from habilis.research.citations import CITED
from habilis.research.contract import ArchivedPage, Effort, Note, Spent
from habilis.tools.web.quoting import one_line

MAX_NOTE = 1_200
"""Maximum number of characters of a note in a prompt."""

_MARK = re.compile(r'^\s*(?:[-*+•]|\(?\d{1,2}[.):])\s+')
_NONE = re.compile(r'\W*(none|nothing|stop|missing|done)\W*', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """An answer of the model, and what it cost."""

    text: str
    spent: Spent


@cache
def prompt(name: str, *, small: bool = False) -> str:
    """A prompt of this room; for a small model, its own one where there is one."""
    folder = files('habilis.research').joinpath('prompts')
    own = folder.joinpath('small', f'{name}.md')
    return (own if small and own.is_file() else folder.joinpath(f'{name}.md')).read_text(encoding='utf-8').strip()


class Questions:
    """Asks the model, counts, and pauses the run at the limit of its cost."""

    def __init__(
        self, model: Model, effort: Effort, *, max_cost: float | None = None, watch: Callable[[str], None]
    ) -> None:
        self.model = model
        self.is_small = model.traits.small
        self.spent = Spent()
        """Also of the calls of an earlier process."""

        self._effort = effort
        self._max_cost = max_cost
        self._watch = watch

    async def ask(self, purpose: str, text: str, allowance: Allowance) -> str:
        """The answer. It is recorded, and counts in the allowance, whether it is new or not."""
        answer = await step(name=f'ask {purpose}')(self._request)(purpose, text)
        allowance.spend(answer.spent)
        self.spent += answer.spent
        return answer.text

    async def _request(self, purpose: str, text: str) -> ModelAnswer:
        if self._max_cost is not None and self.spent.cost >= self._max_cost:
            scope = recording_scope()
            raise Paused(scope.path if scope is not None else '', f'${self.spent.cost:.4f} were spent')
        messages = [Message(role='system', text=prompt('system')), Message(role='user', text=text)]
        reply = await read_reply(self.model, messages, Options(fallback_temperature=0.0))
        usage = reply.usage
        self._watch(f'{purpose} ({self.counted(usage.tokens)})')
        return ModelAnswer(text=reply.text.strip(), spent=Spent(calls=1, tokens=usage.tokens, cost=usage.cost or 0.0))

    def counted(self, tokens: int = 0) -> str:
        """What was used of the bounds, with a call of so many tokens that was just made."""
        calls = self.spent.calls + (1 if tokens else 0)
        used = self.spent.tokens + tokens
        return f'{calls} of {self._effort.calls} calls, {used:,} of {self._effort.tokens:,} tokens'


def notes_text(notes: Sequence[Note], pages: Sequence[ArchivedPage] = ()) -> str:
    """Notes for a prompt: each in one line after its id, so that no note can pose as another one.

    With the pages that they are from, each group of notes is below its page: who says so, and when.
    """
    by_digest = {page.digest: page for page in reversed(pages)}
    lines: list[str] = []
    for digest, group in groupby(notes, key=lambda note: note.digest):
        if digest in by_digest:
            lines.append(_page_line(by_digest[digest]))
        lines += [f'[{note.id}] "{note_line(note)}"' for note in group]
    return '\n'.join(lines) or 'none'


def _page_line(page: ArchivedPage) -> str:
    facts = (f'"{one_line(page.title)}"', page.site, page.author or '', page.date or '')
    return f'From {", ".join(one_line(fact) for fact in facts if fact)}:'


def note_line(note: Note) -> str:
    """The text of a note in one line, without what could pose as a citation."""
    return one_line(CITED.sub(r'\1', note.text), MAX_NOTE)


def lines_of(reply: str) -> list[str]:
    """The items of a list, however it is written; no items if the reply says that there are none."""
    if is_none(reply):
        return []
    lines = [line.strip() for line in reply.splitlines() if line.strip().strip('`')]
    marked = [line for line in lines if _MARK.match(line)]
    return [_MARK.sub('', line).strip().strip('*').strip() for line in marked or lines]


def is_none(reply: str) -> bool:
    """Whether the reply is only a word such as `none` or `stop`."""
    return _NONE.fullmatch(reply.strip()) is not None


def first_line(reply: str) -> str:
    """The first line with words, without quotation marks."""
    return next((line.strip(' \t"\'`“”') for line in reply.splitlines() if any(map(str.isalnum, line))), '')
