"""A process that has imported everything, and becomes two for each attempt: `python -m tests.crash.forks`.

Lines of JSON come in: an `Attempt` begins one, and its process number comes out; a number waits for the end of that
process, and gives how it ended, what it said, and which processes it has left behind.
"""

import ctypes
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, cast

from tests.crash import scenario
from tests.crash.attempt import Attempt, work

LATE = (
    *(f'habilis.journal.stores.{store}' for store in ('sqlite', 'files', 'postgres', 'redis')),
    *('psycopg', 'redis.asyncio', 'habilis.sandbox.wasm.backend', 'habilis.agent.team'),
)
"""What would otherwise be imported in each process, when it is needed."""

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: processes whose parents die become our children
PATIENCE = 10.0
"""Seconds for those who are left behind to see it, and go."""


class Forks:
    """The attempts that are under way."""

    def __init__(self) -> None:
        self._outputs: dict[int, int] = {}

    def start(self, attempt: Attempt) -> int:
        """Begin one, in a process of this number."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                os.setsid()
                os.write(writing, work(attempt).encode())
                os._exit(0)
            except BaseException:
                sys.excepthook(*cast('Any', sys.exc_info()))
                os._exit(1)
        os.close(writing)
        self._outputs[pid] = reading
        return pid

    def wait(self, pid: int) -> dict[str, object]:
        """Until it has ended."""
        _, status = os.waitpid(pid, 0)
        with os.fdopen(self._outputs.pop(pid), 'rb') as output:
            os.set_blocking(output.fileno(), False)  # somebody who was left behind may hold the other end
            said = output.read() or b'null'
        return {'status': os.waitstatus_to_exitcode(status), 'said': json.loads(said), 'left': self._left()}

    def _left(self) -> list[str]:
        """Those who are still there after a while."""
        deadline = time.monotonic() + PATIENCE
        while (left := _children() - self._outputs.keys()) and time.monotonic() < deadline:
            for pid in left:
                os.waitpid(pid, os.WNOHANG)
            time.sleep(0.01)
        return [Path(f'/proc/{pid}/cmdline').read_text().replace('\0', ' ') for pid in left]


def _children() -> set[int]:
    """Only Linux tells."""
    if sys.platform != 'linux':
        return set()
    return {int(pid) for pid in Path('/proc/thread-self/children').read_text().split()}


def main() -> None:
    """Serve."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for name in LATE:
        importlib.import_module(name)
    for recorded in (*scenario.STEPS, *scenario.FLOWS):
        assert recorded.inputs
    gc.freeze()
    forks = Forks()
    for line in sys.stdin:
        asked: Any = json.loads(line)
        answer = forks.wait(asked) if isinstance(asked, int) else forks.start(Attempt(**asked))
        print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    main()
