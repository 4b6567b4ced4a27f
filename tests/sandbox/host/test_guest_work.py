"""Work that a tool has done by the guest: what the guest says about it is not trusted."""

import asyncio

from habilis.core.codec import Json, dump, pack, parse
from habilis.core.limits import Limits
from habilis.sandbox.host.cell_host import CellHost
from habilis.sandbox.host.functions import HostFunction
from habilis.sandbox.host.guest_work import current_port

NOTHING: list[object] = [list[object](), dict[str, object]()]
CALL = 'c' + dump(['work', pack(NOTHING)])


def host_with(loop: asyncio.AbstractEventLoop) -> CellHost:
    """A host with a tool that has two things done by the guest."""

    async def both() -> list[Json]:
        port = current_port.get()
        assert port is not None
        return [await port.run('first'), await port.run('second')]

    def work() -> object:
        return asyncio.run(both())

    tool = HostFunction(name='work', call=work, is_async=False, uses_guest=True)
    return CellHost(tools={'work': tool}, limits=Limits(), seconds=30, loop=loop)


async def test_the_guest_works_until_the_tool_has_its_result() -> None:
    host = host_with(asyncio.get_running_loop())
    assert parse(host.answer(CALL)) == {'do': 'first'}
    assert parse(host.answer('r1')) == {'do': 'second'}
    assert parse(host.answer('r[2]')) == {'ok': pack([1, [2]])}
    assert [(call.tool, call.ok) for call in host.calls] == [('work', True)]


async def test_results_of_no_work_and_malformed_ones_are_errors() -> None:
    host = host_with(asyncio.get_running_loop())
    assert parse(host.answer('r1')) == {'error': ['RuntimeError', 'unknown message']}
    host.answer(CALL)
    assert parse(host.answer('r{')) == {'error': ['SandboxError', 'the sandbox ended during the command']}
    assert not host.calls[0].ok


async def test_a_guest_that_ends_without_a_result_does_not_keep_the_tool_waiting() -> None:
    host = host_with(asyncio.get_running_loop())
    host.answer(CALL)
    working = host._working  # pyright: ignore[reportPrivateUsage]
    assert working is not None
    host.close()
    assert await asyncio.to_thread(working[1].next) is None
    assert working[1].is_done


async def test_a_second_call_while_the_guest_works_gets_no_work() -> None:
    host = host_with(asyncio.get_running_loop())
    host.answer(CALL)
    answer = parse(await asyncio.to_thread(host.answer, CALL))
    assert isinstance(answer, dict)
    assert 'error' in answer
    host.close()
