"""Resource limits of a sandbox."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of each cell. Exceeding one ends that cell only; `cell.error.kind` names the limit."""

    seconds: float = 30.0
    """Wall-clock time of one cell, including tool calls and sleeps (`kind='time'`)."""

    memory_mb: int = 256
    """Memory of the whole sandbox, including the interpreter (`kind='memory'`)."""

    output_bytes: int = 1_000_000
    """Output of one cell, stdout plus stderr (`kind='output'`)."""

    calls: int = 1000
    """Number of tool calls of one cell (`kind='calls'`)."""

    cpu: float = 1.0
    """Maximum CPU share of one core. A busy cell is slowed down, not ended."""

    def __post_init__(self) -> None:
        for name, kind, wanted in (
            ('seconds', int | float, 'a number'),
            ('memory_mb', int, 'a whole number'),
            ('output_bytes', int, 'a whole number'),
            ('calls', int, 'a whole number'),
            ('cpu', int | float, 'a number'),
        ):
            value: object = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool):
                msg = f'Limits.{name} must be {wanted}, not {value!r:.100}'
                raise TypeError(msg)
        _require('seconds', self.seconds, self.seconds > 0 and math.isfinite(self.seconds), 'a positive number')
        _require('memory_mb', self.memory_mb, 48 <= self.memory_mb <= 4096, 'between 48 and 4096')
        _require('output_bytes', self.output_bytes, self.output_bytes >= 0, 'zero or more')
        _require('calls', self.calls, self.calls >= 0, 'zero or more')
        _require('cpu', self.cpu, 0 < self.cpu <= 1, 'above 0 and at most 1')


def _require(name: str, value: float, is_valid: bool, rule: str) -> None:
    if not is_valid:
        msg = f'Limits.{name} must be {rule}, not {value!r}'
        raise ValueError(msg)
