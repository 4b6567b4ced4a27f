"""Results of a benchmark."""

import dataclasses
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.measurement import Sample, cpu_count
from habilis._version import __version__

Progress = Callable[[str], None]
"""Reports what is being measured."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Required range of a number."""

    bound: float
    sense: Literal['at most', 'at least'] = 'at most'

    def is_met(self, value: float) -> bool:
        """Whether the value is on the right side of the bound."""
        return value <= self.bound if self.sense == 'at most' else value >= self.bound


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The same measurement of Habilis and of a peer, interleaved. Seconds, or times per second."""

    ours: Sample
    peer: Sample

    @property
    def ratio(self) -> float:
        """Peer divided by ours. For times, above 1 means that ours is faster; for rates, below 1."""
        return self.peer.median / self.ours.median


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A peer's time for the measurement of a row."""

    peer: str
    """Name, version and configuration of the peer."""

    pair: Pair
    """In seconds."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of Habilis."""

    key: str
    label: str
    unit: str
    value: float | None = None
    """None if it could not be measured; `note` says why."""

    spread: Sample | None = None
    target: Target | None = None
    note: str = ''
    comparison: Comparison | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a value."""
        if self.target is None or self.value is None:
            return None
        return self.target.is_met(self.value)


@dataclass(frozen=True, kw_only=True)
class PeerRow:
    """One peer and its times for the main measurements."""

    peer: str
    isolation: str
    unavailable: str = ''
    """Why it was not measured, and how to install it."""

    new: Pair | None = None
    row: Pair | None = None
    """Several in a row."""

    new_cold: Pair | None = None
    """Compared with Habilis sandboxes without a prestarted interpreter."""

    later: Pair | None = None
    rate: Pair | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of one benchmark."""

    version: str
    python: str
    machine: str
    cores: int
    load: float
    """Load average when the benchmark started."""

    quick: bool
    rows: tuple[Row, ...]
    peers: tuple[PeerRow, ...]

    @property
    def busy(self) -> bool:
        """Whether other load makes the times unreliable."""
        return self.load > self.cores / 2

    @property
    def missed(self) -> list[str]:
        """Keys of the rows that miss their target."""
        return [row.key for row in self.rows if row.met is False]

    def to_json(self) -> dict[str, object]:
        """All fields and computed properties."""
        return {
            **dataclasses.asdict(self),
            'rows': [_row_to_json(row) for row in self.rows],
            'peers': [_peer_to_json(peer) for peer in self.peers],
            'missed': self.missed,
            'busy': self.busy,
        }


def _row_to_json(row: Row) -> dict[str, object]:
    ratio = None if row.comparison is None else row.comparison.pair.ratio
    return {**dataclasses.asdict(row), 'met': row.met, 'ratio': ratio}


def _peer_to_json(peer: PeerRow) -> dict[str, object]:
    pairs = {'new': peer.new, 'row': peer.row, 'new_cold': peer.new_cold, 'later': peer.later, 'rate': peer.rate}
    ratios = {f'{name}_ratio': pair.ratio if pair else None for name, pair in pairs.items()}
    return {**dataclasses.asdict(peer), **ratios}


def make_report(rows: Sequence[Row], *, load: float, quick: bool, peers: Sequence[PeerRow] = ()) -> Report:
    """A report with the versions and the machine."""
    return Report(
        version=__version__,
        python=platform.python_version(),
        machine=f'{platform.system()} {platform.machine()}',
        cores=cpu_count(),
        load=load,
        quick=quick,
        rows=tuple(rows),
        peers=tuple(peers),
    )


def time_row(key: str, label: str, spread: Sample, target: float | None = None, *, unit: str = 'ms') -> Row:
    """A row of times. `spread` is in seconds, `target` in the unit."""
    scale = 1e3 if unit == 'ms' else 1.0
    shown = Sample(
        median=spread.median * scale, low=spread.low * scale, high=spread.high * scale, repeats=spread.repeats
    )
    bound = None if target is None else Target(bound=target)
    return Row(key=key, label=label, unit=unit, value=shown.median, spread=shown, target=bound)
