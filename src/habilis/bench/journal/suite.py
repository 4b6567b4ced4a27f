"""The whole run of `habilis bench journal`."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from habilis.bench.journal import saving
from habilis.bench.journal.comparison import Contest, Turns, contests, hold
from habilis.bench.journal.dbos import GET_IT, NAME, python_with_dbos
from habilis.bench.journal.stores import Place, places
from habilis.bench.journal.servers import Server, postgres_server, redis_server
from habilis.bench.journal.steps import Stepper
from habilis.bench.measurement import load, sample
from habilis.bench.report import Beside, Comparison, Report, Row, report_of, timed

Tell = Callable[[str], None]
REPLAYED = 1000
REPLAY_TARGET = 20.0
SNAPSHOT_TARGET = 15.0


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much to repeat."""

    rounds: int
    steps: int
    """In each round."""

    slow_steps: int
    """The same of those that wait for the disk, and of the peer's."""

    replays: int
    peer_replays: int
    saves: int
    resumes: int


FULL = Effort(rounds=10, steps=300, slow_steps=20, replays=15, peer_replays=3, saves=30, resumes=15)
QUICK = Effort(rounds=3, steps=50, slow_steps=10, replays=3, peer_replays=1, saves=5, resumes=3)


async def measure(*, quick: bool, tell: Tell, postgres: str = '', redis: str = '', peer_python: str = '') -> Report:
    """Measure everything. Takes some minutes beside the peer, or well under one if quick and without it."""
    effort = QUICK if quick else FULL
    busy = load()
    tell('which servers are there')
    with tempfile.TemporaryDirectory(prefix='habilis-', ignore_cleanup_errors=True) as folder:
        async with postgres_server(postgres) as on_postgres, redis_server(redis) as on_redis:
            bench = _Bench(effort, tell, Path(folder), on_postgres, on_redis)
            try:
                rows = await bench.measure(python_with_dbos(peer_python))
            finally:
                await bench.close()
    return report_of(rows, load=busy, quick=quick, peers=bench.absent)


class _Bench:
    """One run of it, with its stores."""

    def __init__(self, effort: Effort, tell: Tell, folder: Path, postgres: Server, redis: Server) -> None:
        self._effort = effort
        self._tell = tell
        self._folder = folder
        self._places = places(folder, postgres, redis)
        self._contests = contests(folder, postgres)
        self._steppers = {place.key: Stepper(place.where) for place in self._places if not place.absent}
        self._beside: dict[str, Beside] = {}
        self.absent: list[Comparison] = []
        """Peers that were not measured."""

    async def measure(self, python: str) -> list[Row]:
        """All rows. The peer comes last, as its threads go on while it waits."""
        steps = await self._steps()
        flows = await self._flow_steps()
        replays = await self._replays()
        alone = [*await self._saving(), self._disk()]
        if python:
            for contest in self._contests:
                await self._hold(contest, python)
        else:
            self.absent.append(Comparison(peer=NAME, isolation='', absent=GET_IT))
        return [self._with_peer(row) for row in [*steps, *self._alike(), *flows, *replays, *alone]]

    async def close(self) -> None:
        """Leave nothing in the stores."""
        for stepper in self._steppers.values():
            await stepper.close()

    def _present(self, keys: Sequence[str] | None = None) -> list[Place]:
        return [place for place in self._places if not place.absent and (keys is None or place.key in keys)]

    # Ours -------------------------------------------------------------------------------------------------------------

    async def _steps(self) -> list[Row]:
        """A round on each store, then the next round."""
        self._tell('steps')
        times: dict[str, list[float]] = {place.key: [] for place in self._places}
        for _ in range(self._effort.rounds):
            for place in self._present():
                count = self._effort.slow_steps if place.slow else self._effort.steps
                times[place.key] += await self._steppers[place.key].steps(count)
        return [self._step_row(place, times[place.key]) for place in self._places]

    def _step_row(self, place: Place, times: Sequence[float]) -> Row:
        key, what = f'step_{place.key}', f'a recorded step, {place.what}'
        if place.absent:
            return Row(key=key, what=what, unit='ms', note=place.absent)
        return timed(key, what, sample(times), place.target)

    async def _flow_steps(self) -> list[Row]:
        self._tell('steps of a flow')
        stepper = self._steppers['sqlite']
        times = [
            seconds for _ in range(self._effort.rounds) for seconds in await stepper.flow_steps(self._effort.steps)
        ]
        return [timed('flow_step', '@step in a @flow, SQLite', sample(times))]

    async def _replays(self) -> list[Row]:
        self._tell(f'{REPLAYED:,} steps replayed')
        wanted = ('sqlite', 'postgres', 'redis')
        present = self._present(wanted)
        times: dict[str, list[float]] = {place.key: [] for place in present}
        for place in present:
            await self._steppers[place.key].record(REPLAYED)
        for _ in range(self._effort.replays):
            for place in present:
                times[place.key].append(await self._steppers[place.key].replay(REPLAYED))
        rows: list[Row] = []
        for place in self._places:
            key, what = f'replay_{place.key}', f'a run of {REPLAYED:,} steps opened and replayed, {place.name}'
            if place.absent and place.key in wanted:
                rows.append(Row(key=key, what=what, unit='ms', note=place.absent))
            elif place.key in wanted:
                target = REPLAY_TARGET if place.key == 'sqlite' else None
                rows.append(timed(key, what, sample(times[place.key]), target))
        return rows

    async def _saving(self) -> list[Row]:
        self._tell('the snapshot of a sandbox')
        where = f'sqlite:{self._folder / "snapshots.db"}'
        saved = await saving.save(where, self._effort.saves, saving.TEXT)
        pieces = await saving.save(where, self._effort.saves, saving.ROWS)
        self._tell('an agent that goes on')
        resumed = await saving.resume(f'sqlite:{self._folder / "agents.db"}', self._effort.resumes)
        size = f'{saved.size / saving.MEGABYTE:.2f} MB'
        return [
            timed('snapshot', f'{size} of variables saved: snapshot and record, SQLite', saved.all, SNAPSHOT_TARGET),
            timed('snapshot_sandbox', 'of it the sandbox alone', saved.sandbox),
            timed('snapshot_pieces', 'the same in 150,000 objects', pieces.all, SNAPSHOT_TARGET),
            timed('resume', f'new agent to its first live step, after {saving.STEPS} recorded ones, SQLite', resumed),
        ]

    def _disk(self) -> Row:
        return timed('disk', 'one fsync of this disk', saving.disk(self._folder, 10 * self._effort.rounds))

    # The peer ---------------------------------------------------------------------------------------------------------

    async def _hold(self, contest: Contest, python: str) -> None:
        self._tell(f'beside {NAME} on {contest.on}, {contest.setting}')
        effort = self._effort
        turns = Turns(rounds=effort.rounds, steps=effort.slow_steps, replays=effort.peer_replays, replayed=REPLAYED)
        found = await hold(contest, python, self._steppers, turns)
        self._beside |= found.beside
        self.absent += found.absent

    def _alike(self) -> list[Row]:
        """The default of ours beside a peer that was set to it."""
        key, what = 'step_sqlite_alike', 'a recorded step, SQLite, beside one as durable'
        beside = self._beside.get(key)
        return [timed(key, what, beside.pair.ours)] if beside is not None else []

    def _with_peer(self, row: Row) -> Row:
        return replace(row, beside=self._beside.get(row.key))
