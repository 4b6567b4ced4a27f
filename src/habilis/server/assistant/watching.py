"""Who watches what: open streams get the records of a run as they are stored, and what happens between them."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Generator, Mapping, Sequence

from habilis.core.codec import Json
from habilis.core.errors import StoreUnavailable
from habilis.journal import Record, RunInfo, Store
from habilis.journal.stores.wrapper import StoreWrapper

MAX_WAITING = 256
"""What waits for a slow client. Older ones are dropped: a client that misses a record gets it from the journal, and the
record has all that happened before it."""

Event = Record | RunInfo | Json
"""A record that was stored, or the run as it is listed now; else what happens between records."""


class Watcher:
    """One open stream."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque(maxlen=MAX_WAITING)
        self._is_due = asyncio.Event()

    def wake(self, events: Sequence[Event] = ()) -> None:
        """These have happened; or nothing is known, except that there is a reason to look."""
        self._waiting.extend(events)
        self._is_due.set()

    def take(self) -> list[Event]:
        """What has happened since the last time."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    async def wait(self, seconds: float) -> bool:
        """Wait until it is woken, at most so long. Whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_due.wait()
        except TimeoutError:
            return False
        self._is_due.clear()
        return True


class Watchers:
    """The open streams by what they watch: a run, or all runs of a user."""

    def __init__(self) -> None:
        self._by_topic: defaultdict[tuple[str, str], set[Watcher]] = defaultdict(set)
        self.is_closed = False
        """Whether the server stops: streams end, and their clients come back to the next one."""

    @contextlib.contextmanager
    def watch(self, kind: str, name: str) -> Generator[Watcher]:
        """Watch the `run` or the `user` of this name."""
        watcher = Watcher()
        self._by_topic[kind, name].add(watcher)
        try:
            yield watcher
        finally:
            self._by_topic[kind, name].discard(watcher)
            if not self._by_topic[kind, name]:
                del self._by_topic[kind, name]

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        for watchers in self._by_topic.values():
            for watcher in watchers:
                watcher.wake()

    def wake(self, kind: str, name: str, events: Sequence[Event] = ()) -> None:
        """Tell those who watch it."""
        for watcher in self._by_topic.get((kind, name), ()):
            watcher.wake(events)


class WatchedStore(StoreWrapper):
    """A store that tells those who watch what it stores."""

    def __init__(self, store: Store, watchers: Watchers) -> None:
        super().__init__(store)
        self._watchers = watchers
        self._is_frozen = False

    def freeze(self) -> None:
        """Store nothing any more: what is under way is interrupted, as by a kill, and the next server resumes it."""
        self._is_frozen = True

    async def create(
        self, info: RunInfo, records: Sequence[Record] = (), *, blobs: Mapping[str, bytes] | None = None
    ) -> bool:
        """See `Store`."""
        created = await super().create(info, records, blobs=blobs)
        if created:
            self._watchers.wake('run', info.run, records)
            self._watchers.wake('user', info.user, [info])
        return created

    async def append(
        self,
        run: str,
        records: Sequence[Record],
        *,
        epoch: int,
        info: RunInfo | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        """See `Store`."""
        if self._is_frozen:
            msg = 'the server stops'
            raise StoreUnavailable(msg)
        await super().append(run, records, epoch=epoch, info=info, blobs=blobs)
        self._watchers.wake('run', run, records)
        if info is not None:
            self._watchers.wake('user', info.user, [info])
