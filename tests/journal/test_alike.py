"""All stores do the same, whatever they are asked and in whatever order."""

import asyncio
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from habilis.core.errors import JournalError
from habilis.journal.contract import Lease, Record, RunInfo, Status, Store
from habilis.journal.encoding import digest_of
from habilis.journal.stores.conformance_values import record
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.memory import MemoryStore
from habilis.journal.stores.sqlite import SqliteStore

STATES: tuple[Status, ...] = ('queued', 'running', 'done')
DATA = {digest_of(data): data for data in (b'', b'x', b'y' * 5000)}


@dataclass(frozen=True)
class Ask:
    """A call of a method."""

    method: str
    args: tuple[object, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def of(self, store: Store) -> Awaitable[object]:
        """Make it."""
        return getattr(store, self.method)(*self.args, **self.options)


def _in_order(first: int, values: list[int]) -> list[Record]:
    return [record(first + n, value) for n, value in enumerate(values)]


def _chosen(digests: set[str]) -> dict[str, bytes]:
    return {digest: DATA[digest] for digest in digests}


runs = st.sampled_from(['run-1', 'run-2', 'RUN-1', '../x', ''])
owners = st.sampled_from(['me', 'you', '\udcff'])
users = st.sampled_from(['', 'ada', "bob'", '\udcff'])
states = st.sampled_from(STATES)
epochs = st.integers(0, 4) | st.just(2**80)
digests = st.sampled_from(sorted(DATA))
infos = st.builds(
    RunInfo, run=runs, user=users, session=users, status=states, title=st.text(max_size=5), created=st.floats(0, 3)
)
named = infos.map(lambda info: replace(info, run='run-1'))
records = st.lists(
    st.builds(record, st.integers(-1, 5) | st.just(2**80), st.sampled_from([None, 1, 'text', [1.5, {'ü': None}]])),
    max_size=3,
)
in_order = st.builds(_in_order, st.integers(1, 4), st.lists(st.integers(0, 1), min_size=1, max_size=3))


def ask(method: str, *args: st.SearchStrategy[Any], **options: st.SearchStrategy[Any]) -> st.SearchStrategy[Ask]:
    """Calls of a method with such arguments."""
    return st.builds(Ask, st.just(method), st.tuples(*args), st.fixed_dictionaries(options))


asks = st.one_of(
    ask('create', infos),
    ask('claim', runs, owner=owners, seconds=st.sampled_from([600.0, -1.0]), over=st.none() | epochs),
    ask('release', runs, epoch=epochs),
    ask('append', runs, records | in_order, epoch=epochs),
    ask(
        'append',
        st.just('run-1'),
        in_order,
        epoch=st.integers(0, 2),
        info=st.none() | named,
        blobs=st.none() | st.sets(digests).map(_chosen),
    ),
    ask('load', runs, after=st.integers(-2, 5) | st.just(2**80)),
    ask('blob', runs, digests),
    ask('info', runs),
    ask('lease', runs),
    ask('delete', runs),
    ask('runs', user=st.none() | users, session=st.none() | users, status=st.none() | states),
)


async def answer(store: Store, asked: Ask) -> object:
    """What comes of it, without the time of day."""
    try:
        result = await asked.of(store)
    except JournalError as error:
        return type(error), str(error)
    return (result.epoch, result.owner, result.until > 0) if isinstance(result, Lease) else result


async def everything(store: Store) -> list[object]:
    """All that a store holds."""
    found: list[object] = []
    for info in await store.runs():
        held = await answer(store, Ask('lease', (info.run,)))
        found.append((info, await store.load(info.run), held))
    return found


@given(st.lists(asks, max_size=40))
@settings(max_examples=60)
def test_all_stores_answer_the_same(asked: list[Ask]) -> None:
    async def compare(folder: Path) -> None:
        stores: tuple[Store, ...] = (MemoryStore(), SqliteStore(folder / 'journal.db'), FileStore(folder / 'files'))
        begin = (
            Ask('create', (RunInfo(run='run-1', created=1.0),)),
            Ask('claim', ('run-1',), {'owner': 'me', 'seconds': 600.0}),
        )
        for one in (*begin, *asked):
            memory, *others = [await answer(store, one) for store in stores]
            assert others == [memory] * 2
        memory, *others = [await everything(store) for store in stores]
        assert others == [memory] * 2
        for store in stores:
            await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder)))
