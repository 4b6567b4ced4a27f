"""A whole sandbox of the service, for callers without a session of their own."""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator

from habilis.sandbox.cell_json import to_json
from habilis.sandbox.contract import Cell, Stream
from habilis.sandbox.host.workers import WORKERS
from habilis.sandbox.session import Sandbox
from habilis.server.settings import ServiceSettings

KEPT_ANSWERS = 32
"""How many answers are kept for requests that are sent again."""


class HostedSandbox:
    """A sandbox with its last executions."""

    kind = 'sandbox'

    def __init__(self, sandbox: Sandbox, settings: ServiceSettings) -> None:
        self.sandbox = sandbox
        self.created = time.time()
        self._settings = settings
        self._executions: OrderedDict[str, CellExecution] = OrderedDict()

    @property
    def busy(self) -> bool:
        """Whether a request is running."""
        return self.sandbox.busy

    def is_expired(self, now: float) -> bool:
        """Whether it was not used for long."""
        return not self.busy and now - self.sandbox.last_used > self._settings.idle_seconds

    def execute(self, code: str, seconds: float | None, request: str | None) -> 'CellExecution':
        """Run a cell; a request that was seen before gets the execution of then. The cell outlives its connection."""
        known = self._executions.get(request) if request is not None else None
        if known is not None:
            return known
        made = CellExecution(self.sandbox, code, seconds)
        if request is not None:
            self._executions[request] = made
            while len(self._executions) > KEPT_ANSWERS:
                self._executions.popitem(last=False)
        return made

    async def close(self) -> None:
        """Close the sandbox."""
        await self.sandbox.close()


class CellExecution:
    """A cell that runs or has run: its output so far, and its result. Any number of requests may follow it."""

    def __init__(self, sandbox: Sandbox, code: str, seconds: float | None) -> None:
        self._output: list[tuple[Stream, str]] = []
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._run(sandbox, code, seconds))
        self._task.add_done_callback(self._wake)

    async def result(self) -> str:
        """The result of the cell as JSON."""
        return await asyncio.shield(self._task)

    async def output(self, pause: float) -> AsyncGenerator[tuple[Stream, str] | None]:
        """All output from the start, as it comes, until the cell has ended; None where there is none for so long."""
        sent = 0
        while True:
            changed, is_done = self._changed, self._task.done()
            for written in self._output[sent:]:
                sent += 1
                yield written
            if is_done:
                return
            try:
                async with asyncio.timeout(pause):
                    await changed.wait()
            except TimeoutError:
                yield None

    async def _run(self, sandbox: Sandbox, code: str, seconds: float | None) -> str:
        cell = await sandbox.run(code, seconds=seconds, on_output=self._write)
        return await WORKERS.submit(lambda: _text(cell))

    def _write(self, stream: Stream, text: str) -> None:
        self._output.append((stream, text))
        self._wake()

    def _wake(self, _task: object = None) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _text(cell: Cell) -> str:
    """A cell as JSON. It may be large, and is made in pieces: `json.dumps` would hold the GIL until it is done."""
    return ''.join(json.JSONEncoder().iterencode(to_json(cell)))
