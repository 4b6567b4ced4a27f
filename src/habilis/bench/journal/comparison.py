"""Ours and DBOS in turns: ours, theirs, ours, theirs, so that what disturbs the machine disturbs both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from habilis.bench.journal.dbos import NAME, Database, Dbos, running
from habilis.bench.journal.servers import Server, peer_schema
from habilis.bench.journal.steps import Stepper
from habilis.bench.measurement import sample
from habilis.bench.sandbox.peers import WrongAnswer
from habilis.bench.report import Beside, Comparison, Pair

AS_IT_COMES = 'as it comes'


@dataclass(frozen=True, kw_only=True)
class Contest:
    """DBOS on one database, and the rows it stands beside."""

    database: Database
    setting: str
    steps: Mapping[str, str]
    """By the key of a row: the key of our place."""

    flow_steps: Mapping[str, str] = field(default_factory=dict[str, str])
    replay: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def on(self) -> str:
        """Which database."""
        return 'SQLite' if self.database.url.startswith('sqlite') else 'PostgreSQL'


@dataclass(frozen=True, kw_only=True)
class Turns:
    """How much to repeat."""

    rounds: int
    steps: int
    replays: int
    replayed: int


def contests(folder: Path, postgres: Server) -> list[Contest]:
    """As it comes, and set as ours: DBOS waits for the disk, which our store in SQLite does only if it is asked to."""
    found = [
        Contest(
            database=Database(url=f'sqlite:///{folder / "dbos.db"}'),
            setting=AS_IT_COMES,
            steps={'step_sqlite': 'sqlite', 'step_sqlite_full': 'sqlite_full'},
        ),
        Contest(
            database=Database(url=f'sqlite:///{folder / "dbos-alike.db"}', alike=True),
            setting='set as ours: WAL, synchronous=NORMAL',
            steps={'step_sqlite_alike': 'sqlite'},
            flow_steps={'flow_step': 'sqlite'},
            replay={'replay_sqlite': 'sqlite'},
        ),
    ]
    if not postgres.absent:
        schema = peer_schema(postgres)
        found += [
            Contest(
                database=Database(url=postgres.adding('options=-csynchronous_commit%3Doff'), schema=schema),
                setting='set as ours: synchronous_commit=off',
                steps={'step_postgres': 'postgres'},
                replay={'replay_postgres': 'postgres'},
            ),
            Contest(
                database=Database(url=postgres.url, schema=schema),
                setting=AS_IT_COMES,
                steps={'step_postgres_full': 'postgres_full'},
            ),
        ]
    return found


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of a contest."""

    beside: Mapping[str, Beside] = field(default_factory=dict[str, Beside])
    """By the key of a row."""

    absent: Sequence[Comparison] = ()


async def hold(contest: Contest, python: str, steppers: Mapping[str, Stepper], turns: Turns) -> Found:
    """Measure, or say why not."""
    try:
        async with running(python, contest.database) as dbos:
            name = f'{NAME} {dbos.version} {contest.setting}'
            pairs = await _steps(contest, dbos, steppers, turns)
            for row, place in contest.replay.items():
                pairs[row] = await _replays(steppers[place], dbos, turns)
    except (WrongAnswer, OSError) as error:
        peer, reason = f'{NAME} on {contest.on}, {contest.setting}', f'does not work here: {error}'
        return Found(absent=[Comparison(peer=peer, isolation='', absent=reason)])
    return Found(beside={row: Beside(peer=name, pair=pair) for row, pair in pairs.items()})


async def _steps(contest: Contest, dbos: Dbos, steppers: Mapping[str, Stepper], turns: Turns) -> dict[str, Pair]:
    await dbos.steps(turns.steps)
    theirs: list[float] = []
    ours: dict[str, list[float]] = {row: [] for row in (*contest.steps, *contest.flow_steps)}
    for _ in range(turns.rounds):
        for row, place in contest.steps.items():
            ours[row] += await steppers[place].steps(turns.steps)
        for row, place in contest.flow_steps.items():
            ours[row] += await steppers[place].flow_steps(turns.steps)
        theirs += await dbos.steps(turns.steps)
    return {row: Pair(ours=sample(times), peer=sample(theirs)) for row, times in ours.items()}


async def _replays(stepper: Stepper, dbos: Dbos, turns: Turns) -> Pair:
    await stepper.record(turns.replayed)
    await dbos.record(turns.replayed)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(turns.replays):
        ours.append(await stepper.replay(turns.replayed))
        theirs.append(await dbos.replay(turns.replayed))
    return Pair(ours=sample(ours), peer=sample(theirs))
