"""Compare our stores with DBOS, interleaved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.installation import PeerError
from benchmarks.journal.dbos_client import NAME, Database, DbosProcess, run_dbos
from benchmarks.journal.servers import Server, peer_schema
from benchmarks.journal.steps import StepTimer
from benchmarks.measurement import interleave, summarize
from benchmarks.report import Comparison, Pair, PeerRow

DEFAULT_SETTINGS = 'with its default settings'


@dataclass(frozen=True, kw_only=True)
class DbosSetup:
    """DBOS on one database, and the rows it is compared with."""

    database: Database
    settings: str
    steps: Mapping[str, str]
    """Key of a row: key of our store."""

    flow_steps: Mapping[str, str] = field(default_factory=dict[str, str])
    replay: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def database_name(self) -> str:
        """Name of the database system."""
        return 'SQLite' if self.database.url.startswith('sqlite') else 'PostgreSQL'


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Number of repeats."""

    rounds: int
    steps: int
    replays: int
    replayed: int


def dbos_setups(folder: Path, postgres: Server) -> list[DbosSetup]:
    """DBOS with its default settings, which wait for the disk, and with the durability of our default."""
    setups = [
        DbosSetup(
            database=Database(url=f'sqlite:///{folder / "dbos.db"}'),
            settings=DEFAULT_SETTINGS,
            steps={'step_sqlite': 'sqlite', 'step_sqlite_full': 'sqlite_full'},
        ),
        DbosSetup(
            database=Database(url=f'sqlite:///{folder / "dbos-relaxed.db"}', relaxed=True),
            settings='with our settings: WAL, synchronous=NORMAL',
            steps={'step_sqlite_alike': 'sqlite'},
            flow_steps={'flow_step': 'sqlite'},
            replay={'replay_sqlite': 'sqlite'},
        ),
    ]
    if not postgres.unavailable:
        schema = peer_schema(postgres)
        setups += [
            DbosSetup(
                database=Database(url=postgres.with_option('options=-csynchronous_commit%3Doff'), schema=schema),
                settings='with our settings: synchronous_commit=off',
                steps={'step_postgres': 'postgres'},
                replay={'replay_postgres': 'postgres'},
            ),
            DbosSetup(
                database=Database(url=postgres.url, schema=schema),
                settings=DEFAULT_SETTINGS,
                steps={'step_postgres_full': 'postgres_full'},
            ),
        ]
    return setups


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Comparisons by the key of a row, or why DBOS was not measured."""

    comparisons: Mapping[str, Comparison] = field(default_factory=dict[str, Comparison])
    unavailable: Sequence[PeerRow] = ()


async def compare(setup: DbosSetup, python: str, timers: Mapping[str, StepTimer], repeats: Repeats) -> Outcome:
    """Measure DBOS and our stores."""
    try:
        async with run_dbos(python, setup.database) as dbos:
            name = f'{NAME} {dbos.version} {setup.settings}'
            pairs = await _compare_steps(setup, dbos, timers, repeats)
            for row, store in setup.replay.items():
                pairs[row] = await _compare_replays(timers[store], dbos, repeats)
    except (PeerError, OSError) as error:
        peer, reason = f'{NAME} on {setup.database_name}, {setup.settings}', f'does not work: {error}'
        return Outcome(unavailable=[PeerRow(peer=peer, isolation='', unavailable=reason)])
    return Outcome(comparisons={row: Comparison(peer=name, pair=pair) for row, pair in pairs.items()})


async def _compare_steps(
    setup: DbosSetup, dbos: DbosProcess, timers: Mapping[str, StepTimer], repeats: Repeats
) -> dict[str, Pair]:
    await dbos.steps(repeats.steps)
    theirs: list[float] = []
    ours: dict[str, list[float]] = {row: [] for row in (*setup.steps, *setup.flow_steps)}
    for _ in range(repeats.rounds):
        for row, store in setup.steps.items():
            ours[row] += await timers[store].steps(repeats.steps)
        for row, store in setup.flow_steps.items():
            ours[row] += await timers[store].flow_steps(repeats.steps)
        theirs += await dbos.steps(repeats.steps)
    return {row: Pair(ours=summarize(times), peer=summarize(theirs)) for row, times in ours.items()}


async def _compare_replays(timer: StepTimer, dbos: DbosProcess, repeats: Repeats) -> Pair:
    await timer.record(repeats.replayed)
    await dbos.record(repeats.replayed)
    measures = (partial(each.replay, repeats.replayed) for each in (timer, dbos))
    ours, theirs = await interleave(repeats.replays, *measures)
    return Pair(ours=ours, peer=theirs)
