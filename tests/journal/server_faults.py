"""What servers, networks and other processes do to a store; the same tests for PostgreSQL and Redis."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from habilis.core.errors import CorruptRecord, LeaseLost, RunBusy, StoreUnavailable
from habilis.journal.contract import Lease, RunInfo, Store
from habilis.journal.encoding import digest_of
from habilis.journal.stores.conformance_values import record, records
from habilis.journal.stores.urls import open_store
from tests.journal.servers import Server
from tests.journal.writer import RUN, following

ROOT = Path(__file__).parents[2]


def new_name() -> str:
    """For a schema or a prefix that no other test has."""
    return f'test_{os.urandom(8).hex()}'


class ServerFaults:
    """Subclass, and say how to make a server that loses nothing when it is killed."""

    def make_server(self) -> Server:
        raise NotImplementedError

    @pytest.fixture
    def own(self) -> Iterator[Server]:
        """A server to be killed."""
        server = self.make_server()
        try:
            server.start()
            yield server
        finally:
            server.close()

    @pytest.fixture
    def url(self) -> str:
        """Of a server that lives, with a place for this test only."""
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = open_store(url)
        yield store
        await store.close()

    @pytest_asyncio.fixture
    async def other(self, url: str) -> AsyncIterator[Store]:
        """Another connection."""
        store = open_store(url)
        yield store
        await store.close()

    async def begin(self, store: Store) -> Lease:
        assert await store.create(RunInfo(run=RUN))
        return await store.claim(RUN, owner='me', seconds=60)

    # The server -------------------------------------------------------------------------------------------------------

    async def test_a_store_continues_when_its_killed_server_is_back_and_nothing_acknowledged_is_lost(
        self, own: Server
    ) -> None:
        store = open_store(own.url)
        lease = await self.begin(store)
        written = [record(seq, 'x' * 1000) for seq in range(1, 51)]
        for each in written:
            await store.append(RUN, [each], epoch=lease.epoch, blobs={digest_of(b'x'): b'x'})
        own.kill()
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as caught:
                await store.append(RUN, [record(51)], epoch=lease.epoch)
            assert caught.value.passing
            assert '\n' not in str(caught.value)
        own.start()
        await store.append(RUN, [record(51)], epoch=lease.epoch)
        assert await store.load(RUN) == [*written, record(51)]
        assert await store.blob(RUN, digest_of(b'x')) == b'x'
        assert await store.lease(RUN) == lease
        await store.close()

    async def test_a_server_that_is_down_at_first_use_is_found_when_it_is_up(self, own: Server) -> None:
        own.stop()
        store = open_store(own.url)
        for asked in (store.runs(), store.create(RunInfo(run=RUN)), store.load(RUN)):
            with pytest.raises(StoreUnavailable, match='is unavailable') as caught:
                await asked
            assert caught.value.passing
        own.start()
        assert await store.create(RunInfo(run=RUN))
        await store.close()

    async def test_a_server_that_is_killed_while_many_write_loses_nothing_that_was_acknowledged(
        self, own: Server
    ) -> None:
        store = open_store(own.url)
        acknowledged: dict[str, int] = {}
        enough = asyncio.Event()

        async def write(run: str) -> None:
            await store.create(RunInfo(run=run))
            lease = await store.claim(run, owner='me', seconds=60)
            for seq in range(1, 100_000):
                await store.append(run, records(1, first=seq), epoch=lease.epoch)
                acknowledged[run] = seq
                if len(acknowledged) == 5 and min(acknowledged.values()) >= 20:
                    enough.set()

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(self.until_away(write(f'run-{number}')))
            await enough.wait()
            own.kill()
        own.start()
        for run, last in acknowledged.items():
            found = await store.load(run)
            assert len(found) - last in {0, 1}
            assert found == records(len(found))
        await store.close()

    async def until_away(self, work: Coroutine[Any, Any, None]) -> None:
        with pytest.raises(StoreUnavailable):
            await work

    # Other processes --------------------------------------------------------------------------------------------------

    async def start(self, url: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, '-m', 'tests.journal.appender', url, stdout=subprocess.PIPE, cwd=ROOT
        )

    async def said(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        return (await process.stdout.readline()).decode().strip()

    async def rest(self, process: asyncio.subprocess.Process) -> list[str]:
        """All it still says until it ends."""
        lines: list[str] = []
        while line := await self.said(process):
            lines.append(line)
        await process.wait()
        return lines

    async def check(self, store: Store, acknowledged: int) -> None:
        """What was acknowledged is there, at most one append more, and each of them as a whole."""
        found, expected, title = await store.load(RUN), list[Any](), ''
        while len(expected) < len(found):
            append = following(len(expected))
            expected += append.records
            title = append.info.title if append.info else title
            for digest, data in append.blobs.items():
                assert await store.blob(RUN, digest) == data
        assert found == expected
        assert (await store.info(RUN)).title == title
        assert acknowledged <= len(found) <= acknowledged + len(following(acknowledged).records)

    async def test_what_a_process_had_acknowledged_when_it_was_killed_is_there(self, url: str, store: Store) -> None:
        for kill in range(3):
            process, acknowledged = await self.start(url), 0
            for _ in range(10 + 7 * kill):
                acknowledged = int(await self.said(process))
            process.send_signal(signal.SIGKILL)
            acknowledged = int([str(acknowledged), *await self.rest(process)][-1])
            await self.check(store, acknowledged)

    async def test_a_process_whose_run_is_taken_writes_nothing_more(self, url: str, store: Store) -> None:
        process, acknowledged = await self.start(url), 0
        for _ in range(10):
            acknowledged = int(await self.said(process))
        lease = await store.claim(RUN, owner='me', seconds=60, over=(await store.lease(RUN)).epoch)
        found = await store.load(RUN)
        *lines, last = [str(acknowledged), *await self.rest(process)]
        assert last == 'lost'
        acknowledged = int(lines[-1])
        assert await store.load(RUN) == found
        assert len(found) == acknowledged
        append = following(acknowledged)
        await store.append(RUN, append.records, epoch=lease.epoch, info=append.info, blobs=append.blobs)
        await self.check(store, acknowledged + len(append.records))

    async def test_of_two_processes_and_two_stores_that_take_a_run_from_each_other_one_writes_at_a_time(
        self, url: str, store: Store, other: Store
    ) -> None:
        processes = [await self.start(url), await self.start(url)]
        first = await asyncio.gather(*(self.said(process) for process in processes))  # one may have lost it already
        for each in (store, other) * 3:
            held = await each.lease(RUN)
            with contextlib.suppress(RunBusy, LeaseLost):
                lease = await each.claim(RUN, owner=f'owner {id(each)}', seconds=60, over=held.epoch)
                last = len(await each.load(RUN))
                append = following(last)
                await each.append(RUN, append.records, epoch=lease.epoch, info=append.info, blobs=append.blobs)
        for process, line in zip(processes, first, strict=True):
            assert [line, *await self.rest(process)][-1] == 'lost'
        await self.check(store, len(await store.load(RUN)))

    async def test_of_ten_tasks_that_claim_at_once_one_wins(self, store: Store, other: Store) -> None:
        await store.create(RunInfo(run=RUN))
        claims = (
            each.claim(RUN, owner=f'owner {number}', seconds=60) for number, each in enumerate([store, other] * 5)
        )
        found = await asyncio.gather(*claims, return_exceptions=True)
        won = [each for each in found if isinstance(each, Lease)]
        assert won == [await store.lease(RUN)]
        assert [type(each) for each in found if each not in won] == [RunBusy] * 9

    async def test_a_batch_is_never_mixed_with_that_of_another_owner(self, store: Store, other: Store) -> None:
        first = await self.begin(store)
        theirs = [record(seq, 'theirs') for seq in range(1, 201)]
        second, *rest = await asyncio.gather(
            other.claim(RUN, owner='you', seconds=60, over=first.epoch),
            *(store.append(RUN, records(200), epoch=first.epoch) for _ in range(3)),
            return_exceptions=True,
        )
        assert isinstance(second, Lease)
        assert {type(each) for each in rest} <= {LeaseLost, type(None)}
        if not await store.load(RUN):
            await other.append(RUN, theirs, epoch=second.epoch)
        assert await other.load(RUN) in (records(200), theirs)

    # The caller -------------------------------------------------------------------------------------------------------

    async def test_an_append_that_is_cancelled_while_the_server_takes_its_time_leaves_the_store_usable(
        self, url: str, store: Store
    ) -> None:
        lease = await self.begin(store)
        async with self.held_up(url):
            task = asyncio.create_task(store.append(RUN, records(1), epoch=lease.epoch))
            await asyncio.sleep(0.1)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await store.append(RUN, records(2), epoch=lease.epoch)
        assert await store.load(RUN) == records(2)
        assert (await store.info(RUN)).run == RUN

    def held_up(self, url: str) -> contextlib.AbstractAsyncContextManager[None]:
        """The server lets nobody append meanwhile."""
        raise NotImplementedError

    def test_a_store_may_be_used_in_one_event_loop_after_the_other(self, url: str) -> None:
        store = open_store(url)

        async def add(last: int) -> int:
            await store.create(RunInfo(run=RUN))
            lease = await store.claim(RUN, owner='me', seconds=60)
            await asyncio.gather(*(store.load(RUN) for _ in range(5)))  # so that some wait for the others
            await store.append(RUN, records(1, first=last + 1), epoch=lease.epoch)
            found = len(await store.load(RUN))
            await store.close()
            return found

        assert [asyncio.run(add(last)) for last in range(3)] == [1, 2, 3]

    # Damage -----------------------------------------------------------------------------------------------------------

    async def damage(self, url: str, seq: int, line: str | None) -> None:
        """Change a line behind the back of the store; None: take it away."""
        raise NotImplementedError

    @pytest.mark.parametrize('line', ['', 'nonsense', '00000000 {}', 'ü' * 100, None])
    async def test_a_damaged_or_missing_record_is_named(self, url: str, store: Store, line: str | None) -> None:
        lease = await self.begin(store)
        await store.append(RUN, records(5), epoch=lease.epoch)
        await self.damage(url, 3, line)
        for after in (0, 2):
            with pytest.raises(CorruptRecord, match=f'record 3 of {RUN}'):
                await store.load(RUN, after=after)
        if line is not None:
            assert await store.load(RUN, after=3) == records(2, first=4)
