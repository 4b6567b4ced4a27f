"""The part of the conformance suite that is about limits; `suite.py` has the rest."""

import threading

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.conformance.tools import Suite


class LimitConformance(Suite):
    """What ends a cell, and what is said about it."""

    @pytest.mark.parametrize(
        ('loop', 'place'),
        [
            ('while True: pass', 'line 3'),
            ('import time\ntime.sleep(60)', 'line 4'),
            ('import asyncio\nawait asyncio.sleep(60)', 'line 4'),
            ('for i in range(9):\n    while True:\n        i += 1', 'lines 3-5'),
        ],
    )
    def test_the_time_limit_ends_the_cell_and_brings_the_variables_back(self, loop: str, place: str) -> None:
        with self.create() as sandbox:
            sandbox.run('x = [1]\ndef f(): return x')
            cell = sandbox.run(f"x.append(2)\nprint('partial')\n{loop}", seconds=3)
            assert cell.error is not None
            assert (cell.error.kind, cell.stdout, cell.rolled_back) == ('time', 'partial\n', True)
            assert f'  File "<cell 2>", {place}, in <module>\n' in cell.error.traceback
            assert cell.error.traceback.endswith('\nTimeoutError: the time limit of 3 s was reached\n')
            assert sandbox.run('f()').value == [1]

    def test_the_memory_limit_ends_the_cell_and_brings_the_variables_back(self) -> None:
        with self.create(limits=Limits(seconds=20, memory_mb=128)) as sandbox:
            sandbox.run('x = 1')
            cell = sandbox.run('pieces = []\nwhile True: pieces.append(bytearray(1 << 20))')
            assert cell.error is not None
            assert (cell.error.kind, cell.error.line, cell.rolled_back) == ('memory', 2, True)
            assert 'the memory limit of 128 MB was reached' in cell.error.message
            assert 'the memory limit of 128 MB was reached' in cell.error.traceback
            assert sandbox.run("x, 'pieces' in globals()").value == (1, False)

    def test_the_output_limit_ends_the_cell(self) -> None:
        with self.create(limits=Limits(seconds=10, output_bytes=1000)) as sandbox:
            cell = sandbox.run("x = 1\nwhile True: print('spam')")
            assert cell.error is not None
            assert (cell.error.kind, len(cell.stdout), cell.rolled_back) == ('output', 1000, False)
            assert cell.error.message == 'the output limit of 1,000 bytes was reached'
            assert sandbox.run('x').value == 1

    def test_the_limit_of_tool_calls_ends_the_cell(self) -> None:
        def ping() -> None: ...

        cell = self.run('while True: ping()', tools=[ping], limits=Limits(seconds=10, calls=5))
        assert cell.error is not None
        assert (cell.error.kind, len(cell.calls)) == ('calls', 5)
        assert cell.error.message == 'the limit of 5 tool calls in one cell was reached'

    def test_cancel_stops_a_running_cell(self) -> None:
        with self.create() as sandbox:
            sandbox.run('x = 1')
            threading.Timer(0.3, sandbox.cancel).start()
            cell = sandbox.run('while True: pass')
            assert cell.error is not None
            assert (cell.error.kind, cell.rolled_back) == ('cancelled', True)
            assert sandbox.run('x').value == 1
