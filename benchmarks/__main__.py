"""Entry point of `python -m benchmarks`, from the root of the repository."""

import sys

from benchmarks.command import app
from habilis.core.errors import HabilisError

try:
    app(prog_name='python -m benchmarks')
except HabilisError as error:
    sys.exit(f'benchmarks: {error}')
