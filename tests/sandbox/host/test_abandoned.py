"""A guest whose thread is stuck in a tool of the host."""

import threading

from habilis import Limits, Sandbox
from tests.waiting import until


async def test_a_guest_that_was_given_up_is_closed_when_its_tool_returns() -> None:
    may_return, closed = threading.Event(), list[bool]()

    def stuck() -> None:
        """Blocks."""
        may_return.wait()

    async with await Sandbox.create('wasm', tools=[stuck], limits=Limits(seconds=0.5)) as sandbox:
        await sandbox.run('1')
        guest = sandbox._interpreter._guest  # pyright: ignore[reportPrivateUsage]
        assert guest is not None
        close = guest.close
        guest.close = lambda: (closed.append(True), close())  # pyright: ignore[reportAttributeAccessIssue]
        cell = await sandbox.run('stuck()')
        assert cell.error is not None
        assert (cell.error.kind, closed) == ('time', [])
        assert (await sandbox.run('2')).value == 2
        may_return.set()
        await until(lambda: closed == [True])
