"""Whoever starts, forks or closes a sandbox may be cancelled at any moment: every guest is closed nevertheless."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import Any

import pytest

from habilis import Sandbox, SandboxPool
from habilis.core.limits import Limits
from habilis.sandbox import backends
from habilis.sandbox.contract import ForkableGuest, Guest, GuestSpec
from habilis.sandbox.host.workers import WORKERS, WorkerCall
from habilis.server.e2b.machine import HostedMachine
from habilis.server.guest_host import HostedGuest
from habilis.server.settings import ServiceSettings
from tests.requirements import require_namespaces
from tests.waiting import until


class GuestCounter:
    """A real backend that knows which of its guests are open."""

    def __init__(self, name: str) -> None:
        self._inner = backends.backend(name)
        self.isolation = self._inner.isolation
        self.started = 0
        self.open: set[Guest] = set()

    def start(self, spec: GuestSpec) -> Guest:
        return self._count(self._inner.start(spec))

    def _count(self, guest: Guest) -> Guest:
        self.started += 1
        self.open.add(guest)
        close = guest.close
        setattr(guest, 'close', lambda: (close(), self.open.discard(guest)))  # noqa: B010 - not assignable
        if isinstance(guest, ForkableGuest):
            fork = guest.fork
            setattr(guest, 'fork', lambda: (made := fork()) and self._count(made))  # noqa: B010
        return guest


@pytest.fixture
def guests(request: pytest.FixtureRequest) -> Iterator[GuestCounter]:
    name = getattr(request, 'param', 'process')
    if name == 'process':
        require_namespaces()
    counter = GuestCounter(name)
    backends.register('counted', lambda: counter)
    yield counter
    backends.unregister('counted')


async def cancel_everywhere(make: Callable[[], Coroutine[Any, Any, object]], guests: GuestCounter) -> None:
    """Run this again and again: cancel it during each of its calls on a worker; and when the result of the call is
    there, and it has not seen it yet."""
    start, moments = WORKERS.start, 0
    for number in count(1):
        for is_late in (False, True):
            task, calls = asyncio.ensure_future(make()), count(1)

            def cancelling(
                call: Callable[[], Any], *, discard: Callable[[Any], object] | None = None
            ) -> WorkerCall[Any]:
                job = start(call, discard=discard)
                if next(calls) == number:  # noqa: B023 - used in this round only
                    if is_late:  # noqa: B023
                        job.future.add_done_callback(lambda _: task.cancel())  # noqa: B023
                    else:
                        asyncio.get_running_loop().call_soon(task.cancel)  # noqa: B023
                return job

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(WORKERS, 'start', cancelling)
                await asyncio.wait([task])
                await until(lambda: not guests.open)
            if not task.cancelled() and next(calls) <= number:
                assert moments >= 4
                return
            moments += 1


@pytest.mark.parametrize('guests', ['wasm', 'process'], indirect=True)
async def test_every_guest_of_a_sandbox_is_closed(guests: GuestCounter) -> None:
    async def use() -> None:
        async with await Sandbox.create('counted') as sandbox:
            await sandbox.run('x = 1')
            async with await sandbox.fork() as twin:
                await twin.run('x')

    await cancel_everywhere(use, guests)


@pytest.mark.parametrize('guests', ['wasm'], indirect=True)
async def test_every_guest_of_a_pool_is_closed(guests: GuestCounter) -> None:
    async def use() -> None:
        async with SandboxPool(2, warm=2, backend='counted') as pool:
            await pool.run('1')

    await cancel_everywhere(use, guests)


async def test_every_guest_of_a_server_is_closed(guests: GuestCounter) -> None:
    async def use() -> None:
        hosted = HostedGuest(guests, Limits(), [], ServiceSettings())
        await hosted.start()
        await hosted.close()

    await cancel_everywhere(use, guests)


async def test_the_guest_of_a_machine_is_closed(guests: GuestCounter) -> None:
    async def use() -> None:
        machine = HostedMachine(guests, ServiceSettings(e2b=True), 'owner')
        await machine.start(seconds=600, env={})
        await machine.close()

    await cancel_everywhere(use, guests)


@pytest.mark.parametrize('guests', ['wasm'], indirect=True)
async def test_a_sandbox_is_closed_although_the_caller_did_not_wait_for_its_cell(guests: GuestCounter) -> None:
    entered, may_return = threading.Event(), threading.Event()

    def stuck() -> None:
        """Blocks."""
        entered.set()
        may_return.wait()

    sandbox = await Sandbox.create('counted', tools=[stuck])
    cell = asyncio.ensure_future(sandbox.run('stuck()'))
    await until(entered.is_set)
    closing = asyncio.ensure_future(sandbox.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    may_return.set()
    await asyncio.wait([cell])
    await until(lambda: not guests.open)
