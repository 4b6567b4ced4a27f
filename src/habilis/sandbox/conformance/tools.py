"""The part of the conformance suite that is about tools; `suite.py` has the rest."""

import asyncio
from typing import Any, ClassVar

from habilis.core.background_loop import run_blocking
from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell
from habilis.sandbox.host.functions import HostFunction
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

    def test_a_definition_with_the_name_of_a_tool_is_refused_before_it_runs(self) -> None:
        with self.create(tools=[_double]) as sandbox:
            for definition in ('def _double(x): ...', 'async def _double(x): ...', 'class _double: ...'):
                cell = sandbox.run(f'started = True\n{definition}')
                assert cell.error is not None, definition
                assert (cell.error.kind, cell.error.type, cell.error.line) == ('syntax', 'SyntaxError', 2)
                assert "'_double'" in cell.error.message
            local = 'def f():\n    def _double(x): return x\n    return _double(1)\nf(), "started" in globals()'
            assert sandbox.run(local).value == (1, False)

    def test_a_tool_that_ends_the_cell_does_so_without_an_error_and_the_variables_stay(self) -> None:
        got: list[object] = []
        end = HostFunction(name='end', call=got.append, is_async=False, ends_cell=True)
        with self.create(tools=[end]) as sandbox:
            for code in ('n = 1\nend(n)\nn = 2', 'import asyncio\nawait asyncio.sleep(0)\nn += 1\nend(n)\nn = 0'):
                cell = sandbox.run(code)
                assert (cell.error, cell.stderr) == (None, '')
            assert sandbox.run('n').value == 2
        assert got == [1, 2]

    def test_a_variable_hides_a_tool_for_as_long_as_there_is_the_variable(self) -> None:
        with self.create(tools=[_double]) as sandbox:
            assert sandbox.run('_double = _double(4)\n_double').value == 8
            assert sandbox.run('_double, tools._double(5)').value == (8, 10)
            with sandbox.fork() as twin:
                assert twin.run('_double, tools._double(5)').value == (8, 10)
            with SyncSandbox.restore(sandbox.snapshot(), self.backend, tools=[_double]) as restored:
                assert restored.run('_double, tools._double(5)').value == (8, 10)
            assert sandbox.run('del _double\n_double(6)').value == 12
            for hiding in ('for _double in [1]: pass', 'import math as _double', '(_double := 1)', '[_double] = [1]'):
                code = f'{hiding}\nhidden = not callable(_double)\ndel _double\nhidden, _double(1)'
                assert sandbox.run(code).value == (True, 2), hiding
            local = 'def f(_double): return _double\nf(1), [_double for _double in [2]], _double(4)'
            assert sandbox.run(local).value == (1, [2], 8)
            assert list(run_blocking(sandbox.sandbox.describe_variables())) == ['hidden', 'f']

    def test_every_tool_is_an_attribute_of_tools(self) -> None:
        async def later(x: int) -> int:
            return x

        with self.create(tools=[_double, later]) as sandbox:
            assert sandbox.run('await tools.later(tools._double(1))').value == 2
            assert sandbox.run('kept = tools.later\nall_tools = tools').ok
            with SyncSandbox.restore(sandbox.snapshot(), self.backend, tools=[_double, later]) as restored:
                assert restored.run('await kept(1), all_tools._double(2)').value == (1, 4)
            assert sandbox.run('tools = [1]\ntools').value == [1]
            assert sandbox.run('del tools\ntools._double(2)').value == 4
            error = sandbox.run('tools.triple').error
            assert error is not None
            assert 'there is no tool' in error.message

    def test_a_coroutine_that_was_never_awaited_is_the_fault_of_the_cell_that_made_it(self) -> None:
        async def later() -> None: ...

        with self.create(tools=[later]) as sandbox:
            assert 'was never awaited' in sandbox.run('later()\n1').stderr
            assert sandbox.run('kept = later()').stderr == ''
            assert sandbox.run('kept = 1').stderr == ''

    def test_a_result_that_is_not_plain_data_is_the_tools_error(self) -> None:
        def bad() -> object:
            return object()

        error = self.run('bad()', tools=[bad]).error
        assert error is not None
        assert 'bad' in error.message
