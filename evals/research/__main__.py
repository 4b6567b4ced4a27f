"""Measure research: `python -m evals.research --model MODEL`. Prints one line per question, then the rates.

A question is solved if a sentence of the report has the answer and cites the page that it is on.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evals.research.site import ResearchQuestion, Site, make_site
from evals.scores import wilson
from habilis.journal import MemoryStore
from habilis.models import Model, load_model
from habilis.research import Folder, Report, Research, read_state
from habilis.research.citations import cited_ids
from habilis.research.contract import EFFORTS, EffortName

RUN = 'eval'


@dataclass(frozen=True, kw_only=True)
class Solved:
    """How one question went."""

    id: str
    solved: bool
    needed: int
    """Pages that the answer needs."""

    cited: int
    """How many of them the report cites."""

    quotes: int
    """Citations whose passage is on its page, word for word."""

    citations: int
    invented: int
    """Addresses in the report that are not those of pages that were read."""

    calls: int
    tokens: int
    seconds: float


async def ask(question: ResearchQuestion, site: Site, model: Model, effort: EffortName) -> Solved:
    """Research one question over the site."""
    started = time.perf_counter()
    store = MemoryStore()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await asyncio.to_thread(site.write, folder)
        report = await Research(model, Folder(folder)).run(question.text, effort=effort, journal=store, run_id=RUN)
    state = await read_state(store, RUN)
    notes = {note.id: note for note in state.notes}
    texts = {page.digest: (await store.blob(RUN, page.digest)).decode() for page in state.pages}
    cited = [notes[one.id] for one in report.citations]
    names = {page.url.rpartition('/')[2] for page in report.sources}
    written = ' '.join(f'{one.title} {one.text}' for one in report.sections)
    return Solved(
        id=question.id,
        solved=is_solved(question, report),
        needed=len(question.pages),
        cited=len(names & set(question.pages)),
        quotes=sum(texts[note.digest][note.start : note.end] == note.text for note in cited),
        citations=len(cited),
        invented=len(re.findall(r'\w+://|www\.', written)),
        calls=report.spent.calls,
        tokens=report.spent.tokens,
        seconds=time.perf_counter() - started,
    )


def is_solved(question: ResearchQuestion, report: Report) -> bool:
    """Whether a sentence has the answer, as a word of its own, and cites the page that the answer is on."""
    pages = {one.id: report.sources[one.source - 1].url.rpartition('/')[2] for one in report.citations}
    lines = [line for section in report.sections for line in re.split(r'\n|(?<=\.)\s', section.text)]
    return any(
        re.search(rf'\b{re.escape(question.answer)}\b', line) is not None
        and question.pages[-1] in {pages[id_] for id_ in cited_ids(line) if id_ in pages}
        for line in lines
    )


def summary(results: Sequence[Solved]) -> str:
    """The rates of all questions, and of those that need as many pages."""
    lines = [f'{"pages":<8}{"solved":>10}{"rate":>8}{"95 % interval":>18}{"mean calls":>12}']
    for needed in (2, 3, 4, 0):
        members = [one for one in results if needed in {0, one.needed}]
        if members:
            solved = sum(one.solved for one in members)
            low, high = wilson(solved, len(members))
            calls = sum(one.calls for one in members) / len(members)
            lines.append(
                f'{needed or "all":<8}{f"{solved} of {len(members)}":>10}{solved / len(members):>8.0%}'
                f'{f"{low:.0%}–{high:.0%}":>18}{calls:>12.1f}'
            )
    quotes, citations = sum(one.quotes for one in results), sum(one.citations for one in results)
    invented = sum(one.invented for one in results)
    return '\n'.join([*lines, f'{quotes} of {citations} quotes are on their pages, {invented} invented addresses'])


async def measure(site: Site, questions: Sequence[ResearchQuestion], model: Model, effort: EffortName) -> list[Solved]:
    """All questions, one after the other; each prints its line."""
    results: list[Solved] = []
    for question in questions:
        results.append(one := await ask(question, site, model, effort))
        mark = 'ok  ' if one.solved else 'FAIL'
        print(f'{mark} {one.id:<12}{one.calls:4} calls {one.seconds:7.1f} s  {question.text}', flush=True)
    return results


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog='python -m evals.research', description=__doc__)
    parser.add_argument('--model', default='local:', help='model to use (default: the embedded one)')
    parser.add_argument('--effort', choices=list(EFFORTS), default='medium', help='effort (default: medium)')
    parser.add_argument('--limit', type=int, help='number of questions (default: all)')
    parser.add_argument('--seed', type=int, default=1, help='seed of the site (default: 1)')
    parser.add_argument('--results', metavar='FILE', help='file for one JSON object per question')
    given = parser.parse_args()
    site = make_site(given.seed)
    questions = site.questions[: given.limit]
    results = asyncio.run(measure(site, questions, load_model(given.model), given.effort))
    if given.results:
        lines = [json.dumps(asdict(one)) for one in results]
        Path(given.results).write_text('\n'.join(lines) + '\n', encoding='utf-8')
    print(summary(results))


if __name__ == '__main__':
    main()
