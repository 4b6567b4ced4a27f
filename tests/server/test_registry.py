"""The sandboxes of the service: what happens to one that starts while the service stops."""

import asyncio

import pytest

from habilis.sandbox.session import Sandbox
from habilis.server.registry import SandboxRegistry, TooMany
from habilis.server.sandbox_host import HostedSandbox
from habilis.server.settings import ServiceSettings


async def test_a_sandbox_that_starts_while_the_service_stops_is_closed() -> None:
    settings = ServiceSettings()
    registry = SandboxRegistry(settings)
    sandbox, may_start = await Sandbox.create('wasm'), asyncio.Event()

    async def make() -> HostedSandbox:
        await may_start.wait()
        return HostedSandbox(sandbox, settings)

    sweeping = asyncio.create_task(registry.sweep())
    starting = asyncio.create_task(registry.start('me', make))
    await asyncio.sleep(0)
    sweeping.cancel()
    await asyncio.wait([sweeping])
    may_start.set()
    with pytest.raises(TooMany, match='the server stops'):
        await starting
    assert registry.count == 0
    assert sandbox.closed
