"""Runs that are killed and gone on with, and what must hold whatever happened to them."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, cast

from habilis.core.owners import owner_state
from habilis.journal.contract import Store
from habilis.journal.index import Index, parent_of
from habilis.journal.stores.run_folder import BLOBS, INFO, LEASE, LOCK, RECORDS
from habilis.journal.stores.urls import open_store
from tests.crash.attempt import Attempt
from tests.crash.effects import Effect, effects_of, repeated
from tests.crash.troubled import TROUBLE, Trouble

ROOT = Path(__file__).parents[2]
MOST = 200
"""So many processes are tried for one run; more would mean that it never ends."""

T = TypeVar('T')


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended."""

    status: int
    said: dict[str, Any]

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def error(self) -> str:
        return str(self.said.get('error', ''))


class Forks:
    """Starts attempts, each in a process of its own. See `tests.crash.forks`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'tests.crash.forks'],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.pid = self._process.pid

    def _ask(self, asked: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f'{json.dumps(asked)}\n')
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, attempt: Attempt) -> int:
        """The number of its process."""
        return cast('int', self._ask(asdict(attempt)))

    def wait(self, pid: int) -> Ended:
        """Until it has ended. It must not leave any process behind."""
        said = self._ask(pid)
        assert said['left'] == []
        return Ended(status=said['status'], said=said['said'] or {})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()


def with_store(address: str, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Look into a store from here."""

    async def look() -> T:
        store = open_store(address)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(look())


class Changes(TypedDict, total=False):
    """What is special about an `Attempt`."""

    trouble: Trouble
    at: int
    together: str
    clock: float
    room: int


class Case:
    """One run. After each of its processes it is looked at what was recorded, and nothing of that may happen again."""

    def __init__(self, forks: Forks, store: str, folder: Path, run: str) -> None:
        self.forks = forks
        self.run = run
        self.store = store
        self.kills = 0
        self.folder = folder
        self.temporary = folder / 'temporary'
        self.temporary.mkdir(exist_ok=True)
        self.plan = Attempt(run=run, store=store, effects=str(folder), temporary=str(self.temporary))
        self._done: set[str] = set()
        self._seen = 0

    # Processes --------------------------------------------------------------------------------------------------------

    def start(self, **changes: Unpack[Changes]) -> int:
        """A process that works on the run."""
        return self.forks.start(replace(self.plan, **changes))

    def wait(self, pid: int) -> Ended:
        """Until it has ended."""
        ended = self.forks.wait(pid)
        assert ended.killed or ended.status == 0, ended
        self.kills += ended.killed
        return ended

    def attempt(self, **changes: Unpack[Changes]) -> Ended:
        """Have a process work on the run until it ends, or is killed."""
        ended = self.wait(self.start(**changes))
        self.look()
        return ended

    def attempt_for(self, seconds: float) -> Ended:
        """The same, killed after a while if it has not ended by then."""
        pid = self.start()
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)  # it stays a process until it is waited for
        ended = self.wait(pid)
        self.look()
        return ended

    # What must hold ---------------------------------------------------------------------------------------------------

    @property
    def effects(self) -> list[Effect]:
        return effects_of(self.folder, self.run)

    def look(self) -> None:
        """Nothing may have been done since the last look that was recorded then."""
        done = set(with_store(self.store, self._ended_paths))  # first: somebody may be at work
        effects = self.effects
        again = [effect for effect in effects[self._seen :] if self._is_done(effect.path)]
        assert again == []
        self._seen, self._done = len(effects), done

    def _is_done(self, path: str) -> bool:
        while path and path not in self._done:
            path = parent_of(path)
        return bool(path)

    async def _ended_paths(self, store: Store) -> list[str]:
        if not any(info.run == self.run for info in await store.runs()):
            return []
        return [path for path, entry in Index(await store.load(self.run)).inside('') if entry.end is not None]

    def check(self, ended: Ended, expected: 'Expected') -> None:
        """The run is done, as if nothing had happened."""
        assert ended.error == ''
        assert ended.said['value'] == expected.value
        effects = self.effects
        assert repeated(effects) == []
        assert {effect.label for effect in effects} == expected.labels
        assert with_store(self.store, self._state) == ('done', True)

    async def _state(self, store: Store) -> tuple[str, bool]:
        """How the run stands, and whether nobody holds it."""
        lease = await store.lease(self.run)
        return (await store.info(self.run)).status, lease.until == 0 or owner_state(lease.owner) == 'dead'

    def finish(self, expected: 'Expected') -> Ended:
        """Go on to the end, without another death."""
        ended = self.attempt()
        self.check(ended, expected)
        return ended


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What comes of the scenario if nothing happens to it."""

    value: object
    labels: frozenset[str]
    writes: tuple[str, ...]
    seconds: float


class House:
    """A store, and room for runs in it."""

    def __init__(self, forks: Forks, store: str, folder: Path) -> None:
        self.forks = forks
        self.store = store
        self.folder = folder
        self.cases: list[Case] = []
        self._expected: Expected | None = None

    def case(self) -> Case:
        """A new run."""
        case = Case(self.forks, self.store, self.folder, f'run-{len(self.cases) + 1}')
        self.cases.append(case)
        return case

    @property
    def expected(self) -> Expected:
        """From a run to which nothing happens."""
        if self._expected is None:
            case = self.case()
            ended = case.attempt()
            assert ended.error == ''
            labels = [effect.label for effect in case.effects]
            assert len(labels) == len(set(labels))
            self._expected = Expected(
                value=ended.said['value'],
                labels=frozenset(labels),
                writes=tuple(ended.said['writes']),
                seconds=ended.said['seconds'],
            )
            case.check(ended, self._expected)
        return self._expected

    def check_leftovers(self) -> None:
        """Whoever works here next clears away what the dead have left; then nothing is left."""
        self.case().finish(self.expected)
        assert list((self.folder / 'temporary').iterdir()) == []
        known = {*(f'{case.run}.effects' for case in self.cases), 'temporary', 'runs', 'runs.db'}
        assert {path.name for path in self.folder.iterdir()} - known == set()
        for path in self.folder.glob('runs/*'):
            assert {file.name for file in path.iterdir()} <= {INFO, RECORDS, BLOBS, LEASE, LOCK}
            assert list(path.rglob('*.new')) == []

    @property
    def kills(self) -> int:
        return sum(case.kills for case in self.cases)


@contextmanager
def told(**facts: object) -> Generator[None]:
    """What the test was doing, if it fails."""
    try:
        yield
    except AssertionError as error:
        error.add_note(', '.join(f'{name}={value}' for name, value in facts.items()))
        raise


def troubled_at_each_write(house: House, trouble: Trouble, stride: int = 1, first: int = 1) -> None:
    """One run for each write of the scenario, whose process is in trouble there; then it is gone on with."""
    expected = house.expected
    for at in range(first, 10 * len(expected.writes), stride):
        case = house.case()
        with told(trouble=trouble, at=at, run=case.run):
            ended = case.attempt(trouble=trouble, at=at)
            if trouble.startswith('fails') and ended.error:
                assert ended.error == f'StoreUnavailable: {TROUBLE}'
            elif not ended.killed:
                case.check(ended, expected)
                assert at >= len(expected.writes)  # only the last one may be made without anybody noticing
                if at > len(expected.writes):
                    break
            case.finish(expected)
    house.check_leftovers()


def killed_at_random(house: House, chance: random.Random, times: int) -> None:
    """Runs that are killed after any time, some of them again and again."""
    expected = house.expected
    while house.kills < times:
        case = house.case()
        deaths: list[float] = []
        with told(run=case.run, deaths=deaths):
            for _ in range(chance.choice((1, 1, 2, 4))):
                deaths.append(chance.uniform(0.0, expected.seconds))
                if not case.attempt_for(deaths[-1]).killed:
                    break
            case.finish(expected)
    house.check_leftovers()
