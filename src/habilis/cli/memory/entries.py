"""`habilis memory list`, `search`, `why`, `add` and `forget`."""

from collections.abc import Sequence
from dataclasses import dataclass

from habilis.cli.memory.opening import entry_json, print_entries, with_memory
from habilis.cli.options import confirm_deletion
from habilis.cli.printing import Page, format_time, print_json
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.core.errors import RememberError
from habilis.core.settings import load_settings
from habilis.journal import Store
from habilis.journal.runs import delete_run, list_runs
from habilis.journal.stores.urls import open_store
from habilis.memory import Entry, Fact, Hit, Memory, Turn
from habilis.memory.context import MemoryContext, describe
from habilis.memory.contract import FactKind
from habilis.memory.forgetting import Selection

EMBED_AT_ONCE = 64
"""Entries that a search embeds first, if they are not embedded yet."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """What to search."""

    text: str
    limit: int
    since: float | None
    until: float | None
    role: str | None
    session: str | None
    history: bool


def list_facts(where: str | None, user: str | None, *, history: bool, as_json: bool) -> int:
    """Print the facts."""

    async def work(memory: Memory) -> int:
        facts = await memory.facts(history=history)
        if as_json:
            print_json([entry_json(fact) for fact in facts])
        elif facts:
            print_entries(facts)
        else:
            say('no facts yet; add one: habilis memory add "Prefers short answers" --kind preference')
        return 0

    return with_memory(where, user, work)


def search(query: Query, where: str | None, user: str | None, embedder: str | None, *, as_json: bool) -> int:
    """Print the facts and turns that fit, best first; the exit code is 1 if there is none."""

    async def work(memory: Memory) -> int:
        await memory.embed_some(EMBED_AT_ONCE)
        hits = await memory.search(
            query.text,
            limit=query.limit,
            since=query.since,
            until=query.until,
            role=query.role,
            session=query.session,
            history=query.history,
            neighbours=True,
        )
        if as_json:
            print_json([{**entry_json(hit.entry), 'score': hit.score, 'why': describe(hit)} for hit in hits])
        elif not hits:
            say('nothing found')
        else:
            print_hits(hits)
        return 0 if hits else 1

    return with_memory(where, user, work, by_meaning=True, embedder_name=embedder)


def print_hits(hits: Sequence[Hit]) -> None:
    """Print what a search has found, with the turns before and after."""
    page, shown = Page(), set[str]()
    for hit in hits:
        if hit.entry.id not in shown:  # it may be next to a better hit
            if shown:
                page.line()
            _print_turns(page, hit.entry, hit.around)
            shown |= {hit.entry.id, *(turn.id for turn in hit.around)}


def _print_turns(page: Page, entry: Turn | Fact, around: Sequence[Turn]) -> None:
    label = f'fact ({entry.kind})' if isinstance(entry, Fact) else entry.session
    page.line(f'{entry.id}  {format_time(entry.time)[:16]}  {label}', 'bold')
    shown = [entry] if isinstance(entry, Fact) else sorted([*around, entry], key=lambda turn: turn.position)
    for one in shown:
        speaker = '' if isinstance(one, Fact) else f'{one.role}: '
        page.text(f'{speaker}{one.text}', '' if one is entry else 'dim', indent=2)


def why(task: str, budget: int, where: str | None, user: str | None, embedder: str | None, *, as_json: bool) -> int:
    """Print what a task would get from the memory, with the reason for each entry."""

    async def work(memory: Memory) -> int:
        await memory.embed_some(EMBED_AT_ONCE)
        context = await memory.context_for(task, budget)
        if as_json:
            items = [{**entry_json(one.entry), 'tokens': one.tokens, 'why': one.why} for one in context.items]
            print_json({'tokens': context.tokens, 'items': items})
            return 0
        print_context(context)
        say(f'{len(context.items)} entries, {context.tokens} of {budget} tokens')
        return 0

    return with_memory(where, user, work, by_meaning=True, embedder_name=embedder)


def print_context(context: MemoryContext) -> None:
    """Print what a prompt gets, with the reason for each entry."""
    page = Page()
    for one in context.items:
        page.text(one.text)
        page.text(f'{one.entry.id}: {one.why}; {one.tokens} tokens', 'dim', indent=2)


def embed(where: str | None, user: str | None, embedder: str | None, *, as_json: bool) -> int:
    """Embed what is not embedded yet, and print how many entries that were."""

    async def work(memory: Memory) -> int:
        if memory.embedder is None:
            msg = "there is no embedder: pip install 'habilis[embeddings]', or name a model with --embedder"
            raise RememberError(msg)
        made = await memory.embed_missing()
        name = memory.embedder.name
        print_json({'embedder': name, 'embedded': made}) if as_json else say(f'embedded {made} entries with {name}')
        return 0

    return with_memory(where, user, work, by_meaning=True, embedder_name=embedder)


def add_fact(
    text: str, kind: FactKind, replaces: str | None, where: str | None, user: str | None, *, as_json: bool
) -> int:
    """Add a fact, and print its id."""

    async def work(memory: Memory) -> int:
        fact = await memory.add_fact(text, kind, replaces=replaces)
        if as_json:
            print_json(entry_json(fact))
        else:
            print(fact.id)
        return 0

    return with_memory(where, user, work)


def forget(chosen: Selection, where: str | None, user: str | None, *, runs: bool, yes: bool, as_json: bool) -> int:
    """Delete entries after confirmation; the exit code is 1 if there are none. `runs`: see `_runs_of`."""

    async def work(memory: Memory) -> int:
        found = await memory.find_to_forget(*chosen.ids, before=chosen.before, query=chosen.query)
        if not found:
            await memory.forget(*chosen.ids, before=chosen.before, query=chosen.query)  # what an earlier one left
            print_json([]) if as_json else say('nothing to forget')
            return 1
        store = open_store(read_settings(load_settings).journal)
        recorded = await _runs_of(store, memory.user, found) if runs else []
        if not yes and not as_json:
            print_entries(found)
        if not confirm_deletion(f'Forget {_count(found, recorded)} for good?', yes=yes):
            return 1
        for run in recorded:
            await delete_run(store, run, user=memory.user)
        await store.close()
        forgotten = await memory.forget(*chosen.ids, before=chosen.before, query=chosen.query)
        if as_json:
            print_json([entry_json(entry) for entry in forgotten])
        else:
            say(f'forgot {_count(forgotten, recorded)}')
        return 0

    return with_memory(where, user, work)


async def _runs_of(store: Store, user: str, entries: Sequence[Entry]) -> list[str]:
    """The runs of the conversations that the turns are from: each has all that was said before it."""
    sessions = dict.fromkeys(entry.session for entry in entries if isinstance(entry, Turn))
    return [run.info.run for session in sessions for run in await list_runs(store, user=user, session=session)]


def _count(entries: Sequence[Entry], runs: Sequence[str]) -> str:
    counted = f'{len(entries)} {"entry" if len(entries) == 1 else "entries"}'
    return f'{counted} and {len(runs)} recorded {"run" if len(runs) == 1 else "runs"}' if runs else counted
