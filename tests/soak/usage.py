"""What processes use, and whether that grows."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SLACK = {'kilobytes_per_descriptor': 500, 'descriptors': 20, 'threads': 8, 'files': 20}
"""How much more may be used in the last quarter than in the second. Work comes in waves."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one process uses at one moment, and how many files are left in the folder for temporary ones."""

    kilobytes: int
    descriptors: int
    threads: int
    files: int

    @property
    def kilobytes_per_descriptor(self) -> float:
        """Memory for the work at that moment: each live sandbox has descriptors and several megabytes."""
        return self.kilobytes / self.descriptors


def usage_of(pid: int, temporary: Path) -> Usage:
    """Raises `OSError` if the process has ended."""
    status = Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
    fields = dict(line.split(':', 1) for line in status.splitlines())
    return Usage(
        kilobytes=int(fields['VmRSS'].split()[0]),
        descriptors=len(os.listdir(f'/proc/{pid}/fd')),
        threads=int(fields['Threads']),
        files=len(os.listdir(temporary)),
    )


def growth(samples: Sequence[Usage]) -> dict[str, tuple[float, float]]:
    """What has grown: the median of the second quarter, and that of the last one."""
    quarter = len(samples) // 4
    if quarter < 10:  # too few to tell growth from waves
        return {}
    found: dict[str, tuple[float, float]] = {}
    for name, slack in SLACK.items():
        before = median(getattr(sample, name) for sample in samples[quarter : 2 * quarter])
        after = median(getattr(sample, name) for sample in samples[-quarter:])
        if after > before * 1.1 + slack:
            found[name] = (before, after)
    return found
