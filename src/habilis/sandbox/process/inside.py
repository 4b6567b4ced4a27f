"""The first code that runs inside: confines the process, then handles requests.

    python -I -S -c '…' '{"confinement": {…}, "stdout": 5}'

Only the standard library is imported before the process is confined.
"""

import json
import sys
from typing import Any

from habilis.sandbox.guest.__main__ import main
from habilis.sandbox.process.confinement import Confinement, confine


def start() -> None:
    """Confine this process, say that it is ready, and handle requests."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    confine(Confinement(**settings.pop('confinement')))
    sys.stdout.write('ready\n')
    sys.stdout.flush()
    main(settings)
