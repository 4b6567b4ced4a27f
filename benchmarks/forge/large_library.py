"""A library of very many tools: the time of a search, and what it costs the prompt of an agent."""

import contextlib
import os
import time
from pathlib import Path

from pydantic import TypeAdapter

from habilis.agent import Agent
from habilis.core.errors import ForgeError
from habilis.core.settings import Settings
from habilis.forge.agent_library import AgentLibrary
from habilis.forge.contract import Manifest
from habilis.forge.library.library import CODE, CURRENT, MANIFEST, TESTS, Library
from habilis.models import ScriptedModel
from habilis.models.tokens import count_message_tokens
from habilis.tools.search_index import IndexedTool

VERBS = """add align average bundle cap check clean collect compare convert count crop cut decode diff encode estimate
expand export extract fill filter find fix flatten format group guess hash import index join label list map mask merge
move normalize order""".split()
NOUNS = """account address album amount angle answer area article audio balance basket bill block book box branch budget
calendar card cell chapter chart city class clock code colour column comment contact country course currency customer
date day device discount distance document duration email event field file formula fraction frame game grade""".split()
QUERIES = (
    'What is 15 percent of the balance of this account?',
    'convert an amount to another currency',
    'Find the date in each email of a customer and list them by city, please',
    'count the days of a course in the calendar',
    'compare two documents chapter by chapter',
    'reverse the string "hello world"',
    'average grade of a class',
    'how many words are in this article?',
)
"""Words of many tools, of few, and of none."""

_MANIFEST = TypeAdapter(Manifest)
_CODE = '''def {name}(values: list[float], digits: int = 2) -> list[float]:
    """{summary}"""
    return [round(value, digits) for value in values]
'''


class LargeLibrary(Library):
    """A library that is filled without tests. Only tools that the queries find have folders of their own."""

    def fill(self, count: int) -> None:
        """Have `count` tools, with an index of all of them."""
        shared = self.folder / '.shared'
        entries = _entries(count)
        if not shared.exists():
            _write(shared, entries[0])
        for entry in entries:
            with contextlib.suppress(FileExistsError):
                os.symlink(shared, self.folder / entry.name, target_is_directory=True)
        self._index.replace_all(entries)
        self._index.mark(self._stamp())
        found = {one.name for query in QUERIES for one in [*self.search(query), *AgentLibrary(self).search(query)]}
        for entry in entries:
            if entry.name in found and (link := self.folder / entry.name).is_symlink():
                link.unlink()
                _write(link, entry)
        self._index.mark(self._stamp())


def _entries(count: int) -> list[IndexedTool]:
    """Tools of which each shares its words with many others."""
    number = len(VERBS) * len(NOUNS) * len(NOUNS)
    if count > number:
        msg = f'there are names for {number} tools only'
        raise ForgeError(msg)
    return [_entry(index * 7919 % number) for index in range(count)]  # a prime, so that no two are equal


def _entry(number: int) -> IndexedTool:
    rest, verb = divmod(number, len(VERBS))
    noun, other = divmod(rest, len(NOUNS))
    action, what, where = VERBS[verb], NOUNS[noun], NOUNS[other]
    name, title = f'{action}_{what}_of_{where}', f'{action.capitalize()} the {what} of each {where} in a list.'
    signature = f'{name}(values: list[float], digits: int = 2) -> list[float]'
    summary = f'{title} Values are rounded to so many digits, and those that are missing are left out.'
    return IndexedTool(name=name, version=1, summary=summary, signature=signature, text=summary)


def _write(folder: Path, entry: IndexedTool) -> None:
    version = folder / 'v1'
    version.mkdir(parents=True)
    facts = {'name': entry.name, 'version': 1, 'summary': entry.summary, 'signature': entry.signature}
    made = _MANIFEST.validate_python({**facts, 'created': '2026-01-01T00:00:00Z'})
    (version / CODE).write_text(_CODE.format(name=entry.name, summary=entry.summary), encoding='utf-8')
    (version / TESTS).write_text('', encoding='utf-8')
    (version / MANIFEST).write_bytes(_MANIFEST.dump_json(made))
    (folder / CURRENT).write_text('1\n', encoding='utf-8')


def search_times(library: Library, rounds: int) -> list[float]:
    """Seconds of searches. The first of each query is not counted: it reads the index from the disk."""
    for query in QUERIES:
        library.search(query)
    return [_search(library, query) for _ in range(rounds) for query in QUERIES]


def _search(library: Library, query: str) -> float:
    started = time.perf_counter()
    library.search(query)
    return time.perf_counter() - started


async def prompt_tokens(library: Library) -> int:
    """Tokens that the library adds to the prompt of an agent: the most of some tasks."""
    return max([await _prompt(query, library) - await _prompt(query, None) for query in QUERIES[:3]])


async def _prompt(task: str, library: Library | None) -> int:
    model = ScriptedModel(["```python\nfinal_answer('done')\n```"])
    async with Agent(model, library=library, settings=Settings(), journal='off') as agent:
        await agent.run(task)
    return count_message_tokens(model.requests[0].messages)
