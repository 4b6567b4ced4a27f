"""Assembly of a report: the sections, and only the sources that they cite, with the passages around each citation."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from habilis.research.citations import CITED, cited_ids, without_addresses
from habilis.research.contract import ArchivedPage, Citation, Note, Report, Section, Spent, SubGoal

CONTEXT_CHARS = 300
"""Characters that are shown before and after a passage."""

_CITED_TOGETHER = re.compile(rf'{CITED.pattern}(?:\s*{CITED.pattern})*')

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
    """The report. A citation of a note that is not there, or whose passage is not on its page, is left out.

    So is a section in which nothing is written. A claim that pages of more than one site support says of how many.
    """
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
    sites = {one.id: by_digest[by_id[one.id].digest].site for one in citations}
    written = [one for one in sections if one.text or any(_is_inside(other, one) for other in sections)]
    return Report(
        title=' '.join(without_addresses(title).split()),
        sections=tuple(replace(one, text=_with_sites(one.text, sites)) for one in written),
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


def _with_sites(text: str, sites: Mapping[str, str]) -> str:
    """The text with only the citations that are known, and the number of their sites where it is more than one."""

    def counted(found: re.Match[str]) -> str:
        known = [id_ for id_ in cited_ids(found[0]) if id_ in sites]
        count = len({sites[id_] for id_ in known})
        return ''.join(f'[{id_}]' for id_ in known) + (f' ({count} sites)' if count > 1 else '')

    return _CITED_TOGETHER.sub(counted, text)


def _is_inside(one: Section, other: Section) -> bool:
    return bool(one.text) and len(one.place) > len(other.place) and one.place[: len(other.place)] == other.place
