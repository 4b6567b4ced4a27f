"""A whole sandbox of the service, for callers without a session of their own."""

import asyncio
import time
from collections import OrderedDict

from habilis.core.codec import Json
from habilis.sandbox.cell_json import to_json
from habilis.sandbox.session import Sandbox
from habilis.server.settings import ServiceSettings

KEPT_ANSWERS = 32
"""How many answers are kept for requests that are sent again."""


class HostedSandbox:
    """A sandbox with its last answers."""

    kind = 'sandbox'

    def __init__(self, sandbox: Sandbox, settings: ServiceSettings) -> None:
        self.sandbox = sandbox
        self.created = time.time()
        self._settings = settings
        self._answers: OrderedDict[str, asyncio.Task[dict[str, Json]]] = OrderedDict()

    @property
    def busy(self) -> bool:
        """Whether a request is running."""
        return self.sandbox.busy

    def is_expired(self, now: float) -> bool:
        """Whether it was not used for long."""
        return not self.busy and now - self.sandbox.last_used > self._settings.idle_seconds

    async def execute(self, code: str, seconds: float | None, request: str | None) -> dict[str, Json]:
        """Run a cell; a request that was seen before gets the same answer. The cell outlives its connection."""
        task = self._answers.get(request) if request is not None else None
        if task is None:
            task = asyncio.create_task(self._run(code, seconds))
            if request is not None:
                self._answers[request] = task
                while len(self._answers) > KEPT_ANSWERS:
                    self._answers.popitem(last=False)
        return await asyncio.shield(task)

    async def _run(self, code: str, seconds: float | None) -> dict[str, Json]:
        return to_json(await self.sandbox.run(code, seconds=seconds))

    async def close(self) -> None:
        """Close the sandbox."""
        await self.sandbox.close()
