"""The part of the conformance suite that is about tools; `conformance.py` has the rest."""

import asyncio
from typing import Any, ClassVar

from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell
from habilis.sandbox.session import Sandbox, SyncSandbox


def _double(x: int) -> int:
    return x * 2


class Suite:
    """What every suite has: the backend under test, and sandboxes of it."""

    backend: ClassVar[str]
    """Name of the backend under test."""

    def create(self, **settings: Any) -> SyncSandbox:
        """A sandbox of the backend under test."""
        settings.setdefault('limits', Limits(seconds=10))
        return Sandbox.create_sync(self.backend, **settings)

    def run(self, code: str, **settings: Any) -> Cell:
        """One cell in a sandbox of its own."""
        with self.create(**settings) as sandbox:
            return sandbox.run(code)


class ToolConformance(Suite):
    """How tools behave inside."""

    def test_a_tool_gets_its_arguments_unchanged(self) -> None:
        got: list[object] = []

        def take(*args: object, **kwargs: object) -> str:
            got.append((args, kwargs))
            return ''

        cell = self.run("take(0, None, flag=False, s='', t=(), d={1: b''})", tools=[take])
        assert got == [((0, None), {'flag': False, 's': '', 't': (), 'd': {1: b''}})]
        assert cell.value == ''
        assert [(call.tool, call.ok) for call in cell.calls] == [('take', True)]

    def test_asynchronous_tools_run_at_the_same_time(self) -> None:
        running = 0
        all_running = asyncio.Event()

        async def work(n: int) -> int:
            nonlocal running
            running += 1
            if running == 10:
                all_running.set()
            await all_running.wait()
            return n

        code = 'import asyncio\nawait asyncio.gather(*[work(i) for i in range(10)])'
        assert self.run(code, tools=[work]).value == list(range(10))

    def test_a_tools_error_arrives_as_an_exception_without_the_hosts_traceback(self) -> None:
        def fail() -> None:
            raise KeyError('missing')

        class Strange(Exception):
            pass

        async def fail_strangely() -> None:
            raise Strange('odd')

        cell = self.run(
            'try:\n    fail()\nexcept KeyError as e:\n    print(repr(e))\nawait fail_strangely()',
            tools=[fail, fail_strangely],
        )
        assert cell.stdout == "KeyError('missing')\n"
        assert cell.error is not None
        assert cell.error.message == 'Strange: odd'
        assert 'conformance_tools.py' not in cell.error.traceback

    def test_an_argument_that_is_not_plain_data_is_refused_by_name(self) -> None:
        def take(first: object, second: object = None) -> None:
            raise AssertionError

        error = self.run('take(1, second=[object()])', tools=[take]).error
        assert error is not None
        assert error.type == 'TypeError'
        assert "'second'" in error.message

    def test_a_cell_that_binds_the_name_of_a_tool_is_refused_before_it_runs(self) -> None:
        with self.create(tools=[_double]) as sandbox:
            for binding in ('def _double(x): ...', '_double = 1', 'import math as _double', 'del _double'):
                cell = sandbox.run(f'started = True\n{binding}')
                assert cell.error is not None, binding
                assert (cell.error.kind, cell.error.type, cell.error.line) == ('syntax', 'SyntaxError', 2)
                assert "'_double'" in cell.error.message
            local = 'def f(_double): return _double\nf(1), _double(4), "started" in globals()'
            assert sandbox.run(local).value == (1, 8, False)

    def test_a_result_that_is_not_plain_data_is_the_tools_error(self) -> None:
        def bad() -> object:
            return object()

        error = self.run('bad()', tools=[bad]).error
        assert error is not None
        assert 'bad' in error.message
