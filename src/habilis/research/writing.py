"""The report: outline, sections and sub-sections in their order, though they are written at the same time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from habilis.core.stems import Stemmer
from habilis.flows import parallel, step
from habilis.research.allowance import Allowance
from habilis.research.citations import check_text, without_addresses
from habilis.research.contract import ArchivedPage, Effort, Note, Section, SubGoal
from habilis.research.forms import Heading, fixed_headings
from habilis.research.page_archive import PageArchive
from habilis.research.requests import Questions, is_none, lines_of, note_line, notes_text, prompt

SECTION, OUTLINE = 'section', 'outline'
"""The names of the steps that record a section, and the title and the headings."""

NOTE_CHARS = 40_000
"""Characters of notes in the prompt of one part, and their share of a small context."""

PARALLEL = 4


@step(name=SECTION)
async def keep_section(section: Section) -> Section:
    """Record a section."""
    return section


@step(name=OUTLINE)
async def keep_outline(title: str, headings: list[str]) -> list[str]:
    """Record the title of the report, and the titles of its sections."""
    return [title, *headings]


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A part to write."""

    place: tuple[int, ...]
    heading: Heading
    allowance: Allowance


class Writer:
    """Writes the report of one run."""

    def __init__(
        self,
        goal: str,
        form: str,
        plan: Sequence[SubGoal],
        notes: Sequence[Note],
        pages: Sequence[ArchivedPage],
        *,
        questions: Questions,
        archive: PageArchive,
        effort: Effort,
    ) -> None:
        self._goal = goal
        self._form, self._fixed = fixed_headings(form)
        self._done = [one for one in plan if one.status == 'done']
        self._notes = notes
        self._pages = pages
        self._questions = questions
        self._archive = archive
        self._effort = effort
        self._stemmer = Stemmer()
        self._outline = ''
        tokens = questions.model.traits.context_tokens
        self._note_chars = min(NOTE_CHARS, tokens)  # a quarter of the context, as a token has about four characters

    async def write(self, allowance: Allowance) -> tuple[str, list[Section]]:
        """The title and the sections."""
        title, headings = await self._headings(allowance)
        self._outline = '\n'.join(f'- {heading.title}' for heading in headings)
        await keep_outline(title, [heading.title for heading in headings])
        shares = allowance.share(len(headings))
        parts = [
            _Part(place=(number,), heading=heading, allowance=share)
            for number, (heading, share) in enumerate(zip(headings, shares, strict=True), 1)
        ]
        written = await parallel(self._write_section, parts, limit=PARALLEL)
        return title, [section for sections in written for section in sections]

    # Outline ----------------------------------------------------------------------------------------------------------

    async def _headings(self, allowance: Allowance) -> tuple[str, list[Heading]]:
        """The title and the headings: of the form, of the model, or, for a small one, of the plan."""
        of_plan = [Heading(title=one.text, goal=one.id) for one in self._done]
        if self._fixed or self._questions.is_small or not self._done:
            return self._goal, self._fixed or of_plan
        findings = '\n'.join(f'- {one.text}\n  {one.finding}' for one in self._done)
        text = prompt('outline').format(goal=self._goal, form=self._form, findings=findings, most=self._effort.sections)
        reply = await self._questions.ask(OUTLINE, text, allowance)
        lines = [without_addresses(line).strip() for line in reply.splitlines()]
        title = next((line[2:].strip() for line in lines if line.startswith('# ')), self._goal)
        titles = [line.lstrip('#').strip() for line in lines if line.startswith('##')]
        titles = titles or [line for line in map(without_addresses, lines_of(reply)) if not line.startswith('#')]
        return title, [Heading(title=one) for one in titles[: self._effort.sections]] or of_plan

    async def _subheadings(self, part: _Part, notes: Sequence[Note]) -> list[Heading]:
        most = self._effort.subsections
        if not most or self._fixed or self._questions.is_small or not notes or not part.allowance.is_left:
            return []
        text = prompt('subsections').format(
            goal=self._goal, outline=self._outline, title=part.heading.title, notes=notes_text(notes), most=most
        )
        reply = await self._questions.ask('subsections', text, part.allowance)
        titles = [without_addresses(line).lstrip('#').strip() for line in lines_of(reply)]
        return [Heading(title=title) for title in titles[:most]]

    # Text -------------------------------------------------------------------------------------------------------------

    async def _write_section(self, part: _Part) -> list[Section]:
        notes = self._notes_for(part.heading)
        subheadings = await self._subheadings(part, notes)
        if len(subheadings) < 2:
            return [await self._write_part(part)]
        head = await keep_section(Section(place=part.place, title=part.heading.title, text=''))
        shares = part.allowance.share(len(subheadings))
        parts = [
            _Part(place=(*part.place, number), heading=heading, allowance=share)
            for number, (heading, share) in enumerate(zip(subheadings, shares, strict=True), 1)
        ]
        return [head, *await parallel(self._write_part, parts, limit=PARALLEL)]

    async def _write_part(self, part: _Part) -> Section:
        notes = self._notes_for(part.heading)
        if not notes or not part.allowance.is_left:
            text = '\n\n'.join(_verbatim(notes[:3]))
        elif self._questions.is_small:
            text = await self._write_lines(part, notes)
        else:
            text = await self._write_checked(part, notes)
        return await keep_section(Section(place=part.place, title=part.heading.title, text=text))

    async def _write_lines(self, part: _Part, notes: Sequence[Note]) -> str:
        """One sentence per note, which the host gives its citation; the notes themselves, if there are none."""
        text = prompt('write', small=True).format(notes=notes_text(notes), title=part.heading.title)
        reply = await self._questions.ask('write', text, part.allowance)
        sentences = [*_cited_lines(reply, {note.id for note in notes})] or _verbatim(notes[:3])
        pages = {note.id: await self._archive.text(note.digest) for note in notes}
        return check_text('\n\n'.join(sentences), pages).text

    async def _write_checked(self, part: _Part, notes: Sequence[Note]) -> str:
        """A text whose sentences have their sources: it is written again once, and what is wrong then is marked."""
        instruction = part.heading.instruction
        text = prompt('write').format(
            goal=self._goal,
            form=self._form,
            outline=self._outline,
            notes=notes_text(notes, self._pages),
            title=part.heading.title,
            instruction=f' {instruction}' if instruction else '',
        )
        reply = await self._questions.ask('write', text, part.allowance)
        pages = {note.id: await self._archive.text(note.digest) for note in notes}
        checked = check_text(_written(reply), pages)
        if checked.problems and part.allowance.is_left:
            problems = '\n'.join(f'- {problem}' for problem in checked.problems)
            text = prompt('rewrite').format(request=text, text=reply, problems=problems)
            reply = await self._questions.ask('rewrite', text, part.allowance)
            checked = check_text(_written(reply), pages)
        return checked.text

    def _notes_for(self, heading: Heading) -> list[Note]:
        """The notes for a part, in their order: those of its sub-goal, or those that share most words with it."""
        notes = [note for note in self._notes if heading.goal in {0, note.goal}]
        wanted = set(self._stemmer.terms(f'{heading.title} {heading.instruction}'))
        ranked = sorted(notes, key=lambda note: -len(wanted & set(self._stemmer.terms(note.text))))
        kept: set[str] = set()
        left = self._note_chars
        for note in ranked:
            left -= len(note.text)
            if left < 0 and kept:
                break
            kept.add(note.id)
        return [note for note in notes if note.id in kept]


def _verbatim(notes: Sequence[Note]) -> list[str]:
    return [f'“{without_addresses(note_line(note))}” [{note.id}]' for note in notes]


def _cited_lines(reply: str, known: set[str]) -> Iterator[str]:
    """The sentences of lines such as `s101: The bridge …`, each with its citation."""
    for line in reply.splitlines():
        name, _, sentence = line.partition(':')
        id_ = name.strip('[]()-* ').lower()
        if id_ in known and sentence.strip():
            yield f'{sentence.strip().rstrip(".")} [{id_}].'


def _written(text: str) -> str:
    """The text without a heading that the model wrote at its start, and without a fence around it; empty for `none`."""
    if is_none(text):
        return ''
    lines = text.strip().splitlines()
    if len(lines) > 1 and lines[0].startswith('```') and lines[-1].startswith('```'):
        lines = lines[1:-1]
    while lines and (lines[0].startswith('#') or not lines[0].strip()):
        lines = lines[1:]
    return '\n'.join(lines)
