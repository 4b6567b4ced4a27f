"""The stores that are measured."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.journal.servers import Server


@dataclass(frozen=True, kw_only=True)
class BenchStore:
    """One store and its configuration."""

    key: str
    label: str
    url: str = ''
    """Argument of `open_store`."""

    unavailable: str = ''
    """Why it cannot be measured."""

    target: float | None = None
    """Milliseconds per step."""

    is_slow: bool = False
    """Each append waits for the disk, so fewer are measured."""

    @property
    def name(self) -> str:
        """Name without the configuration."""
        return self.label.partition(',')[0]


def bench_stores(folder: Path, postgres: Server, redis: Server) -> list[BenchStore]:
    """All stores, including unavailable ones."""
    durable = {'normal': '', 'full': ''}
    if not postgres.unavailable:
        durable = {each: f'{postgres.store_url}&durability={each}' for each in durable}
    return [
        BenchStore(key='sqlite', label='SQLite', url=f'sqlite:{folder / "normal.db"}', target=0.1),
        BenchStore(
            key='sqlite_full',
            label='SQLite, durability=full',
            url=f'sqlite:{folder / "full.db"}?durability=full',
            is_slow=True,
        ),
        BenchStore(
            key='postgres',
            label='PostgreSQL, durability=normal',
            url=durable['normal'],
            unavailable=postgres.unavailable,
            target=0.5,
        ),
        BenchStore(
            key='postgres_full',
            label='PostgreSQL, durability=full',
            url=durable['full'],
            unavailable=postgres.unavailable,
            is_slow=True,
        ),
        BenchStore(
            key='redis',
            label='Redis',
            url='' if redis.unavailable else redis.store_url,
            unavailable=redis.unavailable,
            target=0.3,
        ),
        BenchStore(key='files', label='files', url=f'files:{folder / "files"}'),
        BenchStore(key='memory', label='memory', url='memory:'),
    ]
