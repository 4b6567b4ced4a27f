"""Processes that work on flows, to be killed."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.house.repository import ROOT


class Place:
    """A folder with a store, and the effects of the flows of `tests.flows.app`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = f'sqlite:{folder / "runs.db"}'

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, 'FLOWS_FOLDER': str(self.folder), 'PYTHONPATH': os.pathsep.join([str(ROOT), *sys.path])}

    @property
    def effects(self) -> list[str]:
        file = self.folder / 'effects'
        return file.read_text('utf-8').split() if file.exists() else []

    def hold(self, name: str) -> None:
        """Let the step with this effect wait."""
        (self.folder / f'hold-{name}').touch()

    def let_go(self, name: str) -> None:
        (self.folder / f'hold-{name}').unlink()

    async def reached(self, name: str, process: subprocess.Popen[bytes] | None = None) -> None:
        """Until a step waits."""
        while not (self.folder / f'reached-{name}').exists():
            assert process is None or process.poll() is None, 'the process has ended too early'
            await asyncio.sleep(0.01)
        (self.folder / f'reached-{name}').unlink()

    def begin(self, call: str) -> subprocess.Popen[bytes]:
        """A process that calls a flow of `tests.flows.app`."""
        code = f'import asyncio\nfrom tests.flows import app\nstore = {self.store!r}\nasyncio.run({call})'
        return subprocess.Popen(self.python(f'{START}\n{code}'), env=self.variables)

    def python(self, code: str) -> list[str]:
        """The command that runs some code."""
        return [sys.executable, '-c', code]


START = """
async def finish(flow, name, store, run):
    await (await flow.start(name, journal=store, run_id=run)).result()
"""


def kill(process: subprocess.Popen[bytes]) -> None:
    """At once, without a chance to put anything in order."""
    process.send_signal(signal.SIGKILL)
    process.wait()
