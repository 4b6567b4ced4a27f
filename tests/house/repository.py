"""Where things are in the repository, for the tests that read it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / 'src' / 'habilis'
BENCHMARKS = ROOT / 'benchmarks'
