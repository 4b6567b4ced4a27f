"""The Python of other frameworks: their default, and the sandbox in its place."""

import functools
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.installation import why_missing
from habilis.core.limits import Limits

SECONDS = 60
IMPORTS = ('copy', 'functools', 'hashlib', 'heapq', 'string', 'typing')
"""Modules of HumanEval that the default of smolagents must be allowed to import; its own list has the rest."""


@dataclass(frozen=True, kw_only=True)
class Executor:
    """One way to run the code of an agent. It raises if the code fails."""

    key: str
    label: str
    distribution: str
    start: Callable[[], 'Session']
    """A new one, which has not run anything yet."""

    def unavailable(self) -> str | None:
        """Why it cannot be measured, and how to install it."""
        return why_missing(self.distribution)


@dataclass(frozen=True, kw_only=True)
class Session:
    """An executor that has started."""

    run: Callable[[str], Awaitable[object]]
    """Runs code and returns the value of its last expression."""

    end: Callable[[], Awaitable[object]]


def _smolagents(make: Callable[[], Any]) -> Session:
    executor = make()
    executor.send_tools({})

    async def run(code: str) -> object:
        return executor(code).output

    async def end() -> None:
        if hasattr(executor, 'cleanup'):
            executor.cleanup()

    return Session(run=run, end=end)


def _local_executor() -> Any:
    local: Any = importlib.import_module('smolagents.local_python_executor')
    return local.LocalPythonExecutor([*IMPORTS], timeout_seconds=SECONDS)


def _habilis_executor() -> Any:
    ours: Any = importlib.import_module('habilis.integrations.smolagents')
    return ours.HabilisExecutor(limits=Limits(seconds=SECONDS))


def _monty_provider() -> Session:
    theirs: Any = importlib.import_module('fastmcp.experimental.transforms.code_mode')
    provider = theirs.MontySandboxProvider(limits={'max_feed_duration_secs': SECONDS, 'max_memory': 256 << 20})

    async def end() -> None:
        pass

    return Session(run=provider.run, end=end)


def _habilis_provider() -> Session:
    ours: Any = importlib.import_module('habilis.integrations.fastmcp')
    provider = ours.HabilisProvider(owner=lambda: 'benchmark', limits=Limits(seconds=SECONDS))
    return Session(run=provider.run, end=provider.close)


SMOLAGENTS = (
    Executor(
        key='smolagents',
        label='default of smolagents',
        distribution='smolagents',
        start=functools.partial(_smolagents, _local_executor),
    ),
    Executor(
        key='smolagents_habilis',
        label='smolagents with Habilis',
        distribution='smolagents',
        start=functools.partial(_smolagents, _habilis_executor),
    ),
)
FASTMCP = (
    Executor(
        key='fastmcp',
        label='default of FastMCP (Monty)',
        distribution='pydantic-monty',
        start=_monty_provider,
    ),
    Executor(
        key='fastmcp_habilis',
        label='FastMCP with Habilis',
        distribution='fastmcp',
        start=_habilis_provider,
    ),
)
PAIRS = (SMOLAGENTS, FASTMCP)
"""The default of each framework, and ours in its place."""
