"""All measurements of `python -m benchmarks journal`."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.journal import snapshots
from benchmarks.journal.comparison import DbosSetup, Repeats, compare, dbos_setups
from benchmarks.journal.dbos_client import INSTALL, NAME, python_with_dbos
from benchmarks.journal.servers import Server, postgres_server, redis_server
from benchmarks.journal.steps import StepTimer
from benchmarks.journal.stores import BenchStore, bench_stores
from benchmarks.measurement import interleave, load_average, summarize
from benchmarks.report import Comparison, PeerRow, Progress, Report, Row, make_report, time_row

REPLAYED = 1000
ONCE_STORES = ('sqlite', 'files')
REPLAY_STORES = ('sqlite', 'postgres', 'redis')
REPLAY_TARGET = 20.0
SNAPSHOT_TARGET = 15.0


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Number of repeats."""

    rounds: int
    steps: int
    """Per round."""

    slow_steps: int
    """The same for stores that wait for the disk, and for the peer."""

    replays: int
    peer_replays: int
    snapshots: int
    resumes: int


FULL = Effort(rounds=10, steps=300, slow_steps=20, replays=15, peer_replays=3, snapshots=30, resumes=15)
QUICK = Effort(rounds=3, steps=50, slow_steps=10, replays=3, peer_replays=1, snapshots=5, resumes=3)


async def measure(
    *, quick: bool, progress: Progress, postgres: str = '', redis: str = '', peer_python: str = ''
) -> Report:
    """Run all measurements. Takes some minutes with the peer; under one minute if quick and without it."""
    effort = QUICK if quick else FULL
    load = load_average()
    progress('available servers')
    with tempfile.TemporaryDirectory(prefix='habilis-', ignore_cleanup_errors=True) as folder:
        async with postgres_server(postgres) as on_postgres, redis_server(redis) as on_redis:
            suite = _Suite(effort, progress, Path(folder), on_postgres, on_redis)
            try:
                rows = await suite.measure(python_with_dbos(peer_python))
            finally:
                await suite.close()
    return make_report(rows, load=load, quick=quick, peers=suite.unavailable_peers)


class _Suite:
    """One benchmark run with its open stores."""

    def __init__(self, effort: Effort, progress: Progress, folder: Path, postgres: Server, redis: Server) -> None:
        self._effort = effort
        self._progress = progress
        self._folder = folder
        self._stores = bench_stores(folder, postgres, redis)
        self._setups = dbos_setups(folder, postgres)
        self._timers = {store.key: StepTimer(store.url) for store in self._stores if not store.unavailable}
        self._comparisons: dict[str, Comparison] = {}
        self.unavailable_peers: list[PeerRow] = []

    async def measure(self, python: str) -> list[Row]:
        """All rows. The peer comes last, because its threads keep running."""
        rows = [*await self._steps(), *await self._flow_steps(), *await self._once_steps(), *await self._replays()]
        rows += [*await self._snapshots(), self._fsync()]
        if python:
            for setup in self._setups:
                await self._compare(setup, python)
        else:
            self.unavailable_peers.append(PeerRow(peer=NAME, isolation='', unavailable=INSTALL))
        rows[len(self._stores) : len(self._stores)] = self._equally_durable()
        return [replace(row, comparison=self._comparisons.get(row.key)) for row in rows]

    async def close(self) -> None:
        """Delete the runs of the benchmark and close the stores."""
        for timer in self._timers.values():
            await timer.close()

    # Habilis ----------------------------------------------------------------------------------------------------------

    async def _steps(self) -> list[Row]:
        """Steps in every store, interleaved by rounds."""
        self._progress('steps')
        times: dict[str, list[float]] = {store.key: [] for store in self._stores}
        for _ in range(self._effort.rounds):
            for store in self._stores:
                if not store.unavailable:
                    count = self._effort.slow_steps if store.is_slow else self._effort.steps
                    times[store.key] += await self._timers[store.key].steps(count)
        return [self._step_row(store, times[store.key]) for store in self._stores]

    def _step_row(self, store: BenchStore, times: Sequence[float]) -> Row:
        key, label = f'step_{store.key}', f'recorded step, {store.label}'
        if store.unavailable:
            return Row(key=key, label=label, unit='ms', note=store.unavailable)
        return time_row(key, label, summarize(times), store.target)

    async def _flow_steps(self) -> list[Row]:
        self._progress('steps of a flow')
        timer = self._timers['sqlite']
        times = [taken for _ in range(self._effort.rounds) for taken in await timer.flow_steps(self._effort.steps)]
        return [time_row('flow_step', '@step in a @flow, SQLite', summarize(times))]

    async def _once_steps(self) -> list[Row]:
        """Steps whose mark is flushed to the disk before they start, whatever the durability."""
        self._progress('steps that must not be repeated')
        effort, stores = self._effort, [store for store in self._stores if store.key in ONCE_STORES]
        times: dict[str, list[float]] = {store.key: [] for store in stores}
        for _ in range(effort.rounds):
            for store in stores:
                times[store.key] += await self._timers[store.key].steps(effort.slow_steps, once=True)
        return [
            time_row(f'once_{store.key}', f'step that must not be repeated, {store.label}', summarize(times[store.key]))
            for store in stores
        ]

    async def _replays(self) -> list[Row]:
        self._progress(f'replay of {REPLAYED:,} steps')
        stores = [store for store in self._stores if store.key in REPLAY_STORES]
        present = [store.key for store in stores if not store.unavailable]
        for key in present:
            await self._timers[key].record(REPLAYED)
        measures = (partial(self._timers[key].replay, REPLAYED) for key in present)
        times = dict(zip(present, await interleave(self._effort.replays, *measures), strict=True))
        rows: list[Row] = []
        for store in stores:
            key, label = f'replay_{store.key}', f'open and replay a run of {REPLAYED:,} steps, {store.name}'
            if store.unavailable:
                rows.append(Row(key=key, label=label, unit='ms', note=store.unavailable))
            else:
                target = REPLAY_TARGET if store.key == 'sqlite' else None
                rows.append(time_row(key, label, times[store.key], target))
        return rows

    async def _snapshots(self) -> list[Row]:
        self._progress('snapshots')
        url = f'sqlite:{self._folder / "snapshots.db"}'
        text = await snapshots.snapshot_times(url, self._effort.snapshots, snapshots.TEXT)
        objects = await snapshots.snapshot_times(url, self._effort.snapshots, snapshots.ROWS)
        self._progress('resume of an agent')
        resumed = await snapshots.resume_time(f'sqlite:{self._folder / "agents.db"}', self._effort.resumes)
        size = f'{text.size / snapshots.MEGABYTE:.2f} MB'
        resume_label = f'new agent to its first new step, after {snapshots.STEPS} recorded steps, SQLite'
        return [
            time_row('snapshot', f'snapshot and record {size} of variables, SQLite', text.total, SNAPSHOT_TARGET),
            time_row('snapshot_sandbox', 'the sandbox alone', text.sandbox),
            time_row('snapshot_pieces', 'the same in 150,000 objects', objects.total, SNAPSHOT_TARGET),
            time_row('resume', resume_label, resumed),
        ]

    def _fsync(self) -> Row:
        return time_row('disk', 'one fsync', snapshots.fsync_time(self._folder, 10 * self._effort.rounds))

    # The peer ---------------------------------------------------------------------------------------------------------

    async def _compare(self, setup: DbosSetup, python: str) -> None:
        self._progress(f'{NAME} on {setup.database_name}, {setup.settings}')
        effort = self._effort
        repeats = Repeats(rounds=effort.rounds, steps=effort.slow_steps, replays=effort.peer_replays, replayed=REPLAYED)
        outcome = await compare(setup, python, self._timers, repeats)
        self._comparisons |= outcome.comparisons
        self.unavailable_peers += outcome.unavailable

    def _equally_durable(self) -> list[Row]:
        """Our default compared with a peer of the same durability."""
        key, label = 'step_sqlite_alike', 'recorded step, SQLite, compared at equal durability'
        comparison = self._comparisons.get(key)
        return [time_row(key, label, comparison.pair.ours)] if comparison is not None else []
