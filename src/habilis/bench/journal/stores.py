"""The stores that are measured."""

from dataclasses import dataclass
from pathlib import Path

from habilis.bench.journal.servers import Server


@dataclass(frozen=True, kw_only=True)
class Place:
    """One store."""

    key: str
    what: str
    where: str = ''
    """As `open_store` takes it."""

    absent: str = ''
    """Why it cannot be measured."""

    target: float | None = None
    """Milliseconds for a step."""

    slow: bool = False
    """Each append waits for the disk, and so fewer are made."""

    @property
    def name(self) -> str:
        """Without its setting."""
        return self.what.partition(',')[0]


def places(folder: Path, postgres: Server, redis: Server) -> list[Place]:
    """All of them, also those that are not there."""
    on_postgres = {'normal': '', 'full': ''}
    if not postgres.absent:
        on_postgres = {each: f'{postgres.store}&durability={each}' for each in on_postgres}
    return [
        Place(key='sqlite', what='SQLite', where=f'sqlite:{folder / "normal.db"}', target=0.1),
        Place(
            key='sqlite_full',
            what='SQLite, durability=full',
            where=f'sqlite:{folder / "full.db"}?durability=full',
            slow=True,
        ),
        Place(
            key='postgres',
            what='PostgreSQL, durability=normal',
            where=on_postgres['normal'],
            absent=postgres.absent,
            target=0.5,
        ),
        Place(
            key='postgres_full',
            what='PostgreSQL, durability=full',
            where=on_postgres['full'],
            absent=postgres.absent,
            slow=True,
        ),
        Place(key='redis', what='Redis', where='' if redis.absent else redis.store, absent=redis.absent, target=0.3),
        Place(key='files', what='files', where=f'files:{folder / "files"}'),
        Place(key='memory', what='memory', where='memory:'),
    ]
