"""One researcher: searches, reads, takes notes for a sub-goal, and writes its artifact."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from habilis.core.errors import ToolCallError
from habilis.flows import step
from habilis.models.tokens import count_tokens
from habilis.research.allowance import Allowance
from habilis.research.citations import check_text, without_addresses
from habilis.research.contract import ArchivedPage, Effort, Note, SubGoal
from habilis.research.page_archive import PageArchive
from habilis.research.requests import Questions, first_line, is_none, note_line, notes_text, prompt
from habilis.tools.web.contract import PageSource, SearchResult, WebPage
from habilis.tools.web.excerpts import CHUNK_TOKENS, extract

NOTES, GOAL = 'notes', 'sub-goal'
"""The names of the steps that record what was found."""

MAX_NOTES = 99
"""Notes of one sub-goal: their ids have two digits after its number."""


@step(name=NOTES)
async def keep_notes(notes: list[Note]) -> list[Note]:
    """Record notes."""
    return notes


@step(name=GOAL)
async def keep_goal(goal: SubGoal) -> SubGoal:
    """Record what came of a sub-goal."""
    return goal


@dataclass(frozen=True, kw_only=True)
class Investigation:
    """A sub-goal to investigate."""

    goal: SubGoal
    whole: str
    """The goal of the research."""

    allowance: Allowance
    notes: tuple[Note, ...] = ()
    """What earlier rounds have noted for it."""

    pages: tuple[ArchivedPage, ...] = ()
    """What earlier rounds have read."""

    @property
    def whole_question(self) -> str:
        """The sub-goal with what it is a part of: a small model writes `Where are they?`."""
        return self.goal.text if self.goal.text == self.whole else f'{self.goal.text} ({self.whole})'


@dataclass(frozen=True, kw_only=True)
class GoalFindings:
    """What came of an investigation."""

    goal: SubGoal
    notes: tuple[Note, ...]
    """Also of earlier rounds."""

    pages: tuple[ArchivedPage, ...]


class Researcher:
    """Investigates sub-goals of one run."""

    def __init__(self, questions: Questions, source: PageSource, archive: PageArchive, effort: Effort) -> None:
        self._questions = questions
        self._archive = archive
        self._effort = effort
        self._source = source
        self._search = step(name='search', retries=1)(self._find)
        context = questions.model.traits.context_tokens
        self._chunk_tokens = min(CHUNK_TOKENS, context // 2)

    async def investigate(self, task: Investigation) -> GoalFindings:
        """Search and read until the bounds, or until the model says that its notes suffice."""
        notes, pages, queries = list(task.notes), list[ArchivedPage](), list[str]()
        seen: set[str] = set()
        for _ in range(self._effort.searches):
            query = await self._query(task, notes, queries)
            if query is None:
                break
            queries.append(query)
            try:
                results = await self._search(query)
            except ToolCallError:
                if not pages:
                    raise
                break  # what was found so far is used
            urls = [one.url for one in results if one.url not in seen][: self._effort.pages]
            seen.update(urls)
            if not urls:
                continue
            fetched = await self._archive.fetch(urls)
            for page in fetched.pages:
                if all(page.digest != known.digest for known in pages):
                    pages.append(page)
                    notes += await self._read(page, task, notes)
        goal = await keep_goal(await self._concluded(task, notes, [*task.pages, *pages]))
        return GoalFindings(goal=goal, notes=tuple(notes), pages=tuple(pages))

    async def _find(self, query: str) -> list[SearchResult]:
        return await self._source.search(query)

    async def _query(self, task: Investigation, notes: Sequence[Note], queries: Sequence[str]) -> str | None:
        """The next query; None to stop. The first one of a small model is the goal with the sub-goal."""
        if not queries and self._questions.is_small:
            return task.whole_question
        if not task.allowance.is_left:
            return None
        may_stop = sum(len(note.text) for note in notes) >= self._effort.notes
        text = prompt('query').format(
            goal=task.goal.text,
            artifact=task.goal.artifact or 'an answer',
            whole=task.whole,
            notes=notes_text(notes),
            queries='\n'.join(f'- {query}' for query in queries) or 'none',
            stop=f'\n{prompt("stop")}' if may_stop else '',
        )
        reply = await self._questions.ask('query', text, task.allowance)
        if may_stop and is_none(reply):
            return None
        return first_line(reply) or task.goal.text

    async def _read(self, page: ArchivedPage, task: Investigation, notes: Sequence[Note]) -> list[Note]:
        """New notes from a page."""

        async def ask(text: str) -> str:
            return await self._questions.ask('read', text, task.allowance) if task.allowance.is_left else ''

        text = await self._archive.text(page.digest)
        entry = await extract(
            WebPage(url=page.url, title=page.title, text=text),
            task.whole_question if self._questions.is_small else task.goal.text,
            ask,
            count_tokens=count_tokens,
            chunk_tokens=self._chunk_tokens,
        )
        known = {(note.digest, note.start, note.end) for note in notes}
        new = [one for one in entry.excerpts if (page.digest, one.start, one.end) not in known]
        kept = [
            Note(
                id=f's{task.goal.id}{number:02}',
                goal=task.goal.id,
                digest=page.digest,
                start=one.start,
                end=one.end,
                text=one.text,
            )
            for number, one in enumerate(new, len(notes) + 1)
        ][: MAX_NOTES - len(notes)]
        return await keep_notes(kept)

    async def _concluded(self, task: Investigation, notes: Sequence[Note], read: Sequence[ArchivedPage]) -> SubGoal:
        """The sub-goal with its artifact, or still open. The notes of a small model are the artifact."""
        if not notes:
            return task.goal
        if self._questions.is_small or not task.allowance.is_left:
            finding = '\n'.join(f'{without_addresses(note_line(note))} [{note.id}]' for note in notes)
            return replace(task.goal, status='done', finding=finding)
        text = prompt('artifact').format(
            goal=task.goal.text, artifact=task.goal.artifact or 'the answer', notes=notes_text(notes, read)
        )
        reply = await self._questions.ask('artifact', text, task.allowance)
        if is_none(reply):
            return task.goal
        pages = {note.id: await self._archive.text(note.digest) for note in notes}
        return replace(task.goal, status='done', finding=check_text(reply, pages).text)
