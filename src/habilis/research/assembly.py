"""Assembly of a report: the sections, and only the sources that they cite, with the passages around each citation."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from habilis.research.citations import CITED, cited_ids, without_addresses
from habilis.research.contract import ArchivedPage, Citation, Note, Report, Section, Spent, SubGoal

CONTEXT_CHARS = 300
"""Characters that are shown before and after a passage."""

PageText = Callable[[str], Awaitable[str]]
"""Returns the text of a page by its digest."""


async def assemble(
    title: str,
    sections: Sequence[Section],
    plan: Iterable[SubGoal],
    notes: Iterable[Note],
    pages: Iterable[ArchivedPage],
    text_of: PageText,
    *,
    spent: Spent,
    is_complete: bool = True,
) -> Report:
    """The report. A citation of a note that is not there, or whose passage is not on its page, is left out."""
    by_id = {note.id: note for note in notes}
    by_digest = {page.digest: page for page in reversed([*pages])}
    citations: list[Citation] = []
    numbers: dict[str, int] = {}
    for id_ in cited_ids('\n'.join(section.text for section in sections)):
        note = by_id.get(id_)
        if note is None or note.digest not in by_digest:
            continue
        text = await text_of(note.digest)
        if text[note.start : note.end] != note.text:
            continue
        number = numbers.setdefault(note.digest, len(numbers) + 1)
        citations.append(_citation(note, text, number))
    known = {citation.id for citation in citations}
    return Report(
        title=' '.join(without_addresses(title).split()),
        sections=tuple(replace(one, text=_with_known(one.text, known)) for one in sections),
        sources=tuple(by_digest[digest] for digest in numbers),
        citations=tuple(citations),
        open=tuple(one.text for one in plan if one.status == 'open'),
        is_complete=is_complete,
        spent=spent,
    )


def _citation(note: Note, text: str, source: int) -> Citation:
    before = text[max(0, note.start - CONTEXT_CHARS) : note.start]
    after = text[note.end : note.end + CONTEXT_CHARS]
    shown = [without_addresses(part) for part in (note.text, before, after)]
    return Citation(id=note.id, source=source, quote=shown[0], before=shown[1], after=shown[2])


def _with_known(text: str, known: set[str]) -> str:
    return CITED.sub(lambda found: found[0] if found[1] in known else '', text)
