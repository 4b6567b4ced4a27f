"""Conformance tests for the data of a store: blobs, unusual text, unusual names. And the fixtures of all tests.

See `habilis.journal.stores.conformance`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from habilis.core.codec import Json
from habilis.core.errors import CorruptRecord, JournalError, RunNotFound
from habilis.journal.contract import Lease, Record, RunInfo, Store
from habilis.journal.encoding import digest_of

STRANGE = (
    "'; DROP TABLE runs; --",
    '"\\"\'`$(x)%s{}',
    'a\nb\r\n\tc\u2028d\x1f',
    'a\x00b',
    '\udcff\ud800',
    '\U0001f9ea naïve 日本語 \u202e',
    'x' * 1_000_000,
)
NAMES = (
    '../x',
    '..',
    '.',
    '/',
    'a/b',
    'a\\b',
    'A',
    'a',
    'CON',
    'a:b*?[x]',
    ' ',
    'é',
    'e\u0301',
    '%2e',
    *STRANGE[:-1],
    'n' * 5000,
)

Connect = Callable[[], Awaitable[Store]]


def record(seq: int, value: Json = None, **fields: Any) -> Record:
    """A record."""
    return replace(Record(seq=seq, path=f'step#{seq}', kind='done', value=value, at=1000.0 + seq), **fields)


def records(count: int, *, first: int = 1) -> list[Record]:
    """Consecutive records."""
    return [record(seq, {'n': seq}) for seq in range(first, first + count)]


def names_in(folder: Path) -> list[str]:
    """The names of the files in a folder."""
    return [found.name for found in folder.iterdir()]


class ValuesConformance:
    """Tests of the data of a store."""

    pytestmark: ClassVar[Any] = pytest.mark.asyncio

    durable: ClassVar[bool] = True
    """Whether data survives when all connections are closed."""

    async def connect(self, place: Path) -> Store:
        """A store whose data belongs to `place`, a folder that is new and empty in each test.

        Called again with the same place, it returns another connection to the same data.
        """
        raise NotImplementedError

    async def clean(self, place: Path) -> None:
        """Called after each test, to delete data outside of the folder."""

    @pytest_asyncio.fixture
    async def again(self, tmp_path: Path) -> AsyncIterator[Connect]:
        """Opens another connection to the data of the test."""
        made: list[Store] = []

        async def connect() -> Store:
            made.append(await self.connect(tmp_path / 'place'))
            return made[-1]

        (tmp_path / 'place').mkdir()
        yield connect
        for store in made:
            await store.close()
        await self.clean(tmp_path / 'place')

    @pytest_asyncio.fixture
    async def store(self, again: Connect) -> Store:
        """A store without runs."""
        return await again()

    async def begin(self, store: Store, run: str = 'run-1', **fields: Any) -> Lease:
        """Create a run and claim it."""
        assert await store.create(RunInfo(run=run, **fields))
        return await store.claim(run, owner='me', seconds=60)

    # Blobs ------------------------------------------------------------------------------------------------------------

    async def test_blobs_come_back(self, store: Store, again: Connect) -> None:
        lease, other = await self.begin(store), await again()
        blobs = {digest_of(data): data for data in (b'', b'\x00\xff\n', bytes(range(256)) * 8192)}
        written = [record(1, blob=next(iter(blobs)))]
        await store.append('run-1', written, epoch=lease.epoch, blobs=blobs)
        for digest, data in blobs.items():
            assert await store.blob('run-1', digest) == await other.blob('run-1', digest) == data
        assert await other.load('run-1') == written

    async def test_a_blob_that_is_not_there_is_named(self, store: Store) -> None:
        await self.begin(store)
        for digest in (digest_of(b'nothing'), '', '..', '../info.json', 'x\x00', '\udcff', 'x' * 5000):
            with pytest.raises(CorruptRecord, match='missing'):
                await store.blob('run-1', digest)

    async def test_a_blob_belongs_to_its_run(self, store: Store) -> None:
        lease = await self.begin(store)
        await store.append('run-1', [], epoch=lease.epoch, blobs={digest_of(b'mine'): b'mine'})
        await self.begin(store, 'run-2')
        with pytest.raises(CorruptRecord):
            await store.blob('run-2', digest_of(b'mine'))

    async def test_a_blob_that_is_not_what_its_digest_says_is_never_given(self, store: Store, tmp_path: Path) -> None:
        lease = await self.begin(store)
        for digest in (digest_of(b'true'), '../../outside', '/outside', '', 'a/b', 'a\x00'):
            try:
                await store.append('run-1', [], epoch=lease.epoch, blobs={digest: b'false'})
            except JournalError:
                continue
            with pytest.raises(CorruptRecord):
                await store.blob('run-1', digest)
        assert names_in(tmp_path) == ['place']

    # Text -------------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize('text', STRANGE, ids=lambda text: ascii(text[:10]))
    async def test_strange_text_comes_back_unchanged(self, store: Store, again: Connect, text: str) -> None:
        value: Json = {text: [text]}
        written = [record(1, value, path=text, key=text, attached={text: text}), record(2, blob=text), record(3, text)]
        info = RunInfo(run='run-1', name=text, title=text, parent=text, error=text)
        lease = await self.begin(store)
        await store.append('run-1', written, epoch=lease.epoch, info=info)
        for each in (store, await again()):
            assert await each.load('run-1') == written
            assert await each.info('run-1') == info
        await store.create(RunInfo(run='run-2', name=text, title=text, parent=text, error=text))
        assert (await store.info('run-2')).title == text

    @pytest.mark.parametrize('name', NAMES, ids=lambda name: ascii(name[:10]))
    async def test_users_and_owners_may_have_strange_names_or_are_refused(self, store: Store, name: str) -> None:
        await store.create(RunInfo(run='run-0', user='ada', session='s'))
        info = RunInfo(run='run-1', user=name, session=name)
        try:
            await store.create(info)
            lease = await store.claim('run-1', owner=name, seconds=60)
        except JournalError as error:
            refused = error
        else:
            refused = None
            assert lease == await store.lease('run-1')
            assert lease.owner == name
            assert (await store.claim('run-1', owner=name, seconds=60)).epoch == lease.epoch
            assert await store.runs(user=name) == await store.runs(session=name) == [info]
        assert refused is None or str(refused)
        assert [one.run for one in await store.runs(user='ada', session='s')] == ['run-0']

    # Names ------------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize('run', ['', *NAMES], ids=lambda name: ascii(name[:10]))
    async def test_a_run_may_have_a_strange_name_or_is_refused(self, store: Store, run: str, tmp_path: Path) -> None:
        try:
            lease = await self.begin(store, run)
        except JournalError as error:
            refused = error
        else:
            refused = None
            written = [record(1, run)]
            await store.append(run, written, epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
            assert await store.load(run) == written
            assert await store.blob(run, digest_of(b'x')) == b'x'
            assert await store.runs() == [RunInfo(run=run)]
            await store.delete(run)
        assert await store.runs() == []
        assert refused is None or (str(refused) and not isinstance(refused, RunNotFound))
        assert names_in(tmp_path) == ['place']

    async def test_runs_whose_names_are_nearly_the_same_are_kept_apart(self, store: Store) -> None:
        names: list[str] = []
        for run in (*NAMES, 'n' * 4999 + 'N', 'n' * 4999 + 'm', 'a ', 'a.', '%2E', 'a%2Fb', 'a_b', '__', 'a\x00c'):
            try:
                lease = await self.begin(store, run)
            except JournalError:
                continue
            await store.append(run, [record(1, run)], epoch=lease.epoch)
            names.append(run)
        assert {'a', 'A', 'a_b'} <= set(names)
        assert {info.run for info in await store.runs()} == set(names)
        for run in names:
            assert (await store.load(run))[0].value == run

    # Opening and closing ----------------------------------------------------------------------------------------------

    async def test_a_store_is_closed_twice(self, store: Store) -> None:
        await self.begin(store)
        await store.close()
        await store.close()

    async def test_a_store_that_was_never_used_is_closed(self, store: Store) -> None:
        await store.close()

    async def test_what_was_written_is_there_when_the_store_is_opened_again(self, again: Connect) -> None:
        if not self.durable:  # nothing to test
            return
        store = await again()
        lease = await self.begin(store, user='ada')
        written = [record(1, 'x' * 100_000), record(2, blob=digest_of(b'x'))]
        info = RunInfo(run='run-1', user='ada', status='running', title='t')
        await store.append('run-1', written, epoch=lease.epoch, info=info, blobs={digest_of(b'x'): b'x'})
        await store.close()
        store = await again()
        assert await store.load('run-1') == written
        assert await store.blob('run-1', digest_of(b'x')) == b'x'
        assert await store.runs(user='ada') == [info]
        assert await store.lease('run-1') == lease
        await store.append('run-1', [record(3)], epoch=lease.epoch)
