"""What one cell may use. Limits belong to the call that starts a sandbox, so nobody forgets them."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds for each cell. Passing one ends that cell only, and `cell.error.kind` names it."""

    seconds: float = 30.0
    """Wall-clock time of one cell, tool calls and sleeps included (`kind='time'`)."""

    memory_mb: int = 256
    """Memory of the whole sandbox, interpreter included (`kind='memory'`)."""

    output_bytes: int = 1_000_000
    """What one cell may print, stdout and stderr together (`kind='output'`)."""

    calls: int = 1000
    """How many host tools one cell may call (`kind='calls'`)."""

    cpu: float = 1.0
    """Share of one core a busy cell may use; 0.5 makes it rest half of the time. It slows, it does not end."""

    def __post_init__(self) -> None:
        _require('seconds', self.seconds, self.seconds > 0 and math.isfinite(self.seconds), 'a positive number')
        _require('memory_mb', self.memory_mb, 48 <= self.memory_mb <= 4096, 'between 48 and 4096')
        _require('output_bytes', self.output_bytes, self.output_bytes >= 0, 'zero or more')
        _require('calls', self.calls, self.calls >= 0, 'zero or more')
        _require('cpu', self.cpu, 0 < self.cpu <= 1, 'above 0 and at most 1')


def _require(name: str, value: float, good: bool, rule: str) -> None:
    if not good:
        msg = f'Limits.{name} must be {rule}, not {value!r}'
        raise ValueError(msg)
