"""What a run of the benchmark found."""

import dataclasses
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from habilis._version import __version__
from habilis.bench.measurement import Sample, cores


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a number should be."""

    bound: float
    sense: Literal['at most', 'at least'] = 'at most'

    def is_met(self, value: float) -> bool:
        """Whether the value is on the right side."""
        return value <= self.bound if self.sense == 'at most' else value >= self.bound


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The same thing done by ours and by a peer, in turns. Seconds, or times per second."""

    ours: Sample
    peer: Sample

    @property
    def ratio(self) -> float:
        """Peer by ours. For times, more than 1 means that ours is faster; for rates, less than 1."""
        return self.peer.median / self.ours.median


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What a peer takes for the same thing."""

    peer: str
    """Its name and version, and how it is set."""

    pair: Pair
    """In seconds."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of ours."""

    key: str
    what: str
    unit: str
    value: float | None = None
    """None if it could not be measured; `note` says why."""

    spread: Sample | None = None
    target: Target | None = None
    note: str = ''
    beside: Beside | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if there is none, or no value."""
        if self.target is None or self.value is None:
            return None
        return self.target.is_met(self.value)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ours beside one peer."""

    peer: str
    isolation: str
    absent: str = ''
    """Why it was not measured, and how to get it."""

    new: Pair | None = None
    new_cold: Pair | None = None
    """The same, where ours had no interpreter started ahead."""

    later: Pair | None = None
    rate: Pair | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it."""

    version: str
    python: str
    machine: str
    cores: int
    load: float
    """Of the machine, when the run began."""

    quick: bool
    rows: tuple[Row, ...]
    peers: tuple[Comparison, ...]

    @property
    def disturbed(self) -> bool:
        """Whether others used the machine so much that the times say little."""
        return self.load > self.cores / 2

    @property
    def missed(self) -> list[str]:
        """The targets that are not met, by key."""
        return [row.key for row in self.rows if row.met is False]

    def to_json(self) -> dict[str, object]:
        """For machines; what is computed is there too."""
        rows = [_row_json(row) for row in self.rows]
        peers = [_comparison_json(comparison) for comparison in self.peers]
        return {
            **dataclasses.asdict(self),
            'rows': rows,
            'peers': peers,
            'missed': self.missed,
            'disturbed': self.disturbed,
        }


def _row_json(row: Row) -> dict[str, object]:
    ratio = None if row.beside is None else row.beside.pair.ratio
    return {**dataclasses.asdict(row), 'met': row.met, 'ratio': ratio}


def _comparison_json(comparison: Comparison) -> dict[str, object]:
    pairs = {'new': comparison.new, 'new_cold': comparison.new_cold, 'later': comparison.later, 'rate': comparison.rate}
    ratios = {f'{name}_ratio': pair.ratio if pair else None for name, pair in pairs.items()}
    return {**dataclasses.asdict(comparison), **ratios}


def report_of(rows: Sequence[Row], *, load: float, quick: bool, peers: Sequence[Comparison] = ()) -> Report:
    """What was measured here and now."""
    return Report(
        version=__version__,
        python=platform.python_version(),
        machine=f'{platform.system()} {platform.machine()}',
        cores=cores(),
        load=load,
        quick=quick,
        rows=tuple(rows),
        peers=tuple(peers),
    )


def timed(
    key: str,
    what: str,
    spread: Sample,
    target: float | None = None,
    *,
    unit: str = 'ms',
    beside: Beside | None = None,
) -> Row:
    """A row of times. `spread` is in seconds, `target` in the unit."""
    scale = 1e3 if unit == 'ms' else 1.0
    shown = Sample(
        median=spread.median * scale, low=spread.low * scale, high=spread.high * scale, repeats=spread.repeats
    )
    bound = None if target is None else Target(bound=target)
    return Row(key=key, what=what, unit=unit, value=shown.median, spread=shown, target=bound, beside=beside)
