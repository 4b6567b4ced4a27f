"""Code that wants all the time, memory, stack or output there is. It gets its share, and the next cell has its own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.host import results
from habilis.sandbox.host.cell_host import CellHost
from habilis.sandbox.session import Sandbox
from tests.sandbox.hostile import HOST, assert_right, attack, kind_of, prepare


@pytest.fixture
async def patient() -> AsyncIterator[Sandbox]:
    """A sandbox whose time limit no test reaches, however busy the machine."""
    async with await Sandbox.create(limits=Limits(seconds=60)) as made:
        yield made


# Time


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('while True: pass', id='a loop'),
        pytest.param(
            'def f():\n    try:\n        while True: pass\n    finally:\n        f()\nf()',
            id='a loop, and one when it ends',
        ),
        pytest.param(
            'while True:\n    try:\n        while True: pass\n    except BaseException: pass',
            id='a loop that catches all',
        ),
        pytest.param('while True:\n    try: raise KeyboardInterrupt\n    except BaseException: pass', id='exceptions'),
        pytest.param('for _ in iter(int, 1): pass', id='an endless iterator'),
        pytest.param('import itertools; sum(itertools.repeat(0))', id='a loop in C'),
        pytest.param('sum(range(10 ** 12))', id='a long loop in C'),
        pytest.param("import re; re.match('(a+)+$', 'a' * 40 + 'b')", id='a regular expression'),
        pytest.param('10 ** 10 ** 8', id='a power'),
        pytest.param('int("9" * 4300) ** 100_000', id='a large product'),
        pytest.param('"a" * 10**7 in "a" * 10**7 + "b"\nlist(map(hash, iter(lambda: 1, 2)))', id='a slow search'),
        pytest.param('x = ["ha"] * 10\nfor _ in range(12): x = [x] * 10\nprint(x)', id='laughs, printed'),
        pytest.param('x = ["ha"] * 10\nfor _ in range(12): x = [x] * 10\nlen(repr(x))', id='laughs, shown'),
        pytest.param('x = [object()] * 10\nfor _ in range(12): x = [x] * 10\nx', id='laughs that are not plain data'),
        pytest.param('a = b = ()\nfor _ in range(40): a, b = (a, a), (b, b)\na == b', id='laughs, compared'),
        pytest.param('class A:\n    def __repr__(self):\n        while True: pass\nA()', id='a repr'),
        pytest.param('class A(Exception):\n    def __str__(self):\n        while True: pass\nraise A', id='a message'),
        pytest.param('class A:\n    def __del__(self):\n        while True: pass\nA()\nNone', id='a destructor'),
        pytest.param(
            'class A(dict):\n    def items(self):\n        while True: yield 1, 2\nA()', id='a dict that lies'
        ),
        pytest.param('import sys\nsys.stdout.write = None\nwhile True: pass', id='a loop without output'),
        pytest.param('import asyncio\nasync def f():\n    while True: await asyncio.sleep(0)\nawait f()', id='async'),
        pytest.param(
            'import asyncio\nwhile True:\n    try: await asyncio.sleep(9)\n    except BaseException: 0', id='no cancel'
        ),
        pytest.param('import sys\nsys.setswitchinterval(1e9)\nwhile True: pass', id='a long switch interval'),
    ],
)
async def test_an_endless_cell_ends_at_its_time_limit(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code, seconds=0.4)
    assert cell.error is not None
    assert (cell.error.kind, cell.error.type) == ('time', 'TimeoutError')
    assert cell.error.message == 'the time limit of 0.4 s was reached'


@pytest.mark.parametrize(
    'code',
    [
        'import time; time.sleep(100)',
        'from time import sleep\ntry: sleep(100)\nfinally: sleep(100)',
        'import time, importlib; importlib.reload(time).sleep(100)',
        'import asyncio; await asyncio.sleep(100)',
        'import asyncio; asyncio.run(asyncio.sleep(100))',
        'import asyncio; await asyncio.wait_for(asyncio.Event().wait(), 100)',
        'import asyncio; await asyncio.gather(*[asyncio.sleep(100) for _ in range(100)])',
        'import asyncio; await asyncio.shield(asyncio.sleep(100))',
        'import time\nwhile True: time.sleep(0)',
    ],
)
async def test_a_sleep_ends_at_the_time_limit(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code, seconds=0.3)
    assert kind_of(cell) == 'time'


@pytest.mark.parametrize(
    'code',
    [
        'import select; select.select([], [], [], 100)',
        'import select; select.poll().poll(100_000)',
        'import threading; threading.Event().wait(100)',
        'import threading; threading.Event().wait()',
        'import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()',
        'import queue; queue.Queue().get()',
        'import asyncio; await asyncio.Event().wait()',
        'import sys; sys.stdin.read()',
        'import signal; signal.pause()',
    ],
)
async def test_waiting_for_what_cannot_come_does_not_outlast_the_time_limit(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code, seconds=1)
    assert cell.seconds < 50


async def test_a_cell_that_answers_just_after_its_time_is_over_was_too_late() -> None:
    host = CellHost(tools={}, limits=Limits(), seconds=2, loop=asyncio.get_running_loop())
    host.end('time')
    error = results.parse_cell({'value': 1, 'text': '1'}, host, 1, describe=False).cell.error
    assert error is not None
    assert (error.kind, error.message) == ('time', 'the time limit of 2 s was reached')


async def test_hundreds_of_short_sleeps_are_short(sandbox: Sandbox) -> None:
    code = 'import asyncio, time\nfor n in range(1, 100):\n    time.sleep(n * 1e-8)\n    await asyncio.sleep(n * 1e-8)'
    for _ in range(5):
        assert (await attack(sandbox, code)).ok


async def test_what_was_printed_before_the_time_limit_is_kept(sandbox: Sandbox) -> None:
    cell = await attack(sandbox, 'print("before")\nkeep = "changed"\nwhile True: pass', seconds=0.3)
    assert (kind_of(cell), cell.stdout) == ('time', 'before\n')


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets a stuck tool go when the test is over."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_tool_that_never_returns_does_not_hold_the_cell_for_ever(release: threading.Event) -> None:
    def stuck() -> bool:
        return release.wait(300)

    async with await Sandbox.create(tools=[stuck], limits=Limits(seconds=0.3)) as sandbox:
        cell = await attack(sandbox, 'stuck()')
    assert kind_of(cell) == 'time'


async def test_an_asynchronous_tool_that_never_returns_is_cancelled_at_the_time_limit() -> None:
    left: list[str] = []

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append('left')

    async with await Sandbox.create(tools=[stuck], limits=Limits(seconds=0.3)) as sandbox:
        cell = await attack(sandbox, 'await stuck()')
    assert (kind_of(cell), left) == ('time', ['left'])


# Saving the variables is bounded too


@pytest.mark.slow
async def test_variables_that_take_for_ever_to_save_are_given_up(sandbox: Sandbox) -> None:
    await prepare(sandbox)
    await sandbox.run('class X:\n    def __reduce__(self):\n        while True: pass\nx = X()')
    cell = await sandbox.run('x')
    assert cell.error is not None
    assert (cell.error.kind, 'took longer' in cell.error.message) == ('broken', True)
    await assert_right(sandbox)


@pytest.mark.parametrize('doing', ['os._exit(1)', 'os.abort()', 'x = [bytearray(1 << 20) for _ in range(400)]'])
async def test_variables_that_kill_the_process_that_saves_them_are_abandoned(sandbox: Sandbox, doing: str) -> None:
    await prepare(sandbox)
    await sandbox.run(f'class X:\n    def __reduce__(self):\n        import os\n        {doing}\nx = X()')
    assert kind_of(await sandbox.run('1')) in {'broken', None}
    await assert_right(sandbox)


@pytest.mark.parametrize(
    'made', ['(os._exit, (1,))', '(os.abort, ())', '(int, ("x",))', '(exit, ())', '(eval, ("1/0",))']
)
async def test_variables_that_kill_the_process_that_loads_them_are_tried_once(sandbox: Sandbox, made: str) -> None:
    await prepare(sandbox)
    await sandbox.run(f'import os\nclass X:\n    def __reduce__(self):\n        return {made}\nx = X()')
    assert kind_of(await sandbox.run('while True: pass', seconds=0.2)) == 'time'
    cell = await sandbox.run('keep')
    assert cell.error is not None
    assert (cell.error.kind, 'empty now' in cell.error.message) == ('broken', True)
    await prepare(sandbox)
    await assert_right(sandbox)


# Memory


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('x = []\nfor _ in range(400): x.append(bytearray(1 << 20))', id='400 MB in pieces'),
        pytest.param('x = bytearray(400 << 20)', id='400 MB at once'),
        pytest.param('x = "a" * 10 ** 9', id='a long text'),
        pytest.param('x = 1 << 4 * 10 ** 9', id='a large number'),
        pytest.param('x = [0] * (100 << 20)', id='a long list'),
        pytest.param('x = b"x" * (120 << 20)\nx', id='a large value'),
        pytest.param('x = "é" * (60 << 20)\nx', id='a large text as value'),
        pytest.param('x = "ab"\nwhile True: x += x', id='doubling'),
        pytest.param(
            'import zlib; d = zlib.compress(bytes(1 << 20)) * 1\nx = zlib.decompress(d) * 400', id='a zip bomb'
        ),
        pytest.param('class A:\n    def __repr__(self): return "x" * (400 << 20)\nA(), str(A())', id='a repr'),
        pytest.param('x = [0]\nwhile True: x += x', id='lists'),
    ],
)
async def test_a_cell_that_needs_too_much_memory_gets_an_error(patient: Sandbox, code: str) -> None:
    assert kind_of(await attack(patient, code)) == 'memory'


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('x = "a" * 10 ** 10', id='more than can be counted'),
        pytest.param('x = bytearray(10 ** 10)', id='more bytes than can be counted'),
        pytest.param('x = range(10 ** 10)\nlist(x)', id='a long range'),
        pytest.param('"%10000000000d" % 1', id='a wide format'),
        pytest.param('f"{1:{10 ** 9}}" * 9', id='a wide field'),
        pytest.param(
            'while True:\n    x = []\n    try:\n        while True: x += [bytes(1 << 20)]\n    except MemoryError: 0',
            id='catching it',
        ),
        pytest.param('import sys\nsys.setrecursionlimit(10 ** 9)\nx = lambda: x()\nx()', id='with deep recursion'),
        pytest.param('from ast import parse\nparse("x = (" * 90 + ")" * 90 + "\\n" * 10 ** 7)', id='in the parser'),
    ],
)
async def test_other_ways_to_want_too_much_are_errors_too(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code, seconds=2)
    assert kind_of(cell) in {'memory', 'exception', 'time', 'stack', 'broken', 'syntax'}


async def test_a_smaller_limit_of_memory_ends_a_cell_sooner() -> None:
    async with await Sandbox.create(limits=Limits(seconds=5, memory_mb=64)) as sandbox:
        cell = await attack(sandbox, 'x = bytearray(60 << 20)')
        assert (await sandbox.run('len(bytearray(5 << 20))')).value == 5 << 20
    assert kind_of(cell) == 'memory'


# Output


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('for i in range(10 ** 6): print(i)', id='a million prints'),
        pytest.param('print("x" * 10 ** 8)', id='one huge print'),
        pytest.param('import sys\nwhile True: print("x" * 1000, file=sys.stderr)', id='stderr'),
        pytest.param('import os\nwhile True: os.write(1, b"x" * 65536)', id='going around the kernel'),
        pytest.param(HOST + 'while True: host("o" + "x" * 10_000)', id='on the channel'),
        pytest.param(
            'while True:\n    try:\n        while True: print("x" * 1000)\n    except BaseException: 0', id='stubborn'
        ),
        pytest.param(
            'import warnings\nwarnings.simplefilter("always")\nwhile True: warnings.warn("x" * 9000)', id='warnings'
        ),
        pytest.param(
            'class A:\n    def __del__(self):\n        while True: print("x" * 1000)\nA()\nNone', id='at the end'
        ),
    ],
)
async def test_too_much_output_ends_the_cell(patient: Sandbox, code: str) -> None:
    cell = await attack(patient, code)
    assert kind_of(cell) == 'output'
    assert len(cell.stdout) + len(cell.stderr) <= 1_000_000


async def test_what_fits_of_too_much_output_is_kept(patient: Sandbox) -> None:
    cell = await attack(patient, 'for i in range(10 ** 6): print(i)')
    lines = cell.stdout.splitlines()[:-1]
    assert lines == [str(i) for i in range(len(lines))]
    assert len(lines) > 100_000


# Stack

DEEP = 'deep = []\nfor _ in range(100_000): deep = [deep]\n'


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('def f(): return f()\nf()', id='a function'),
        pytest.param(
            'import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): return f()\nf()', id='without Python’s limit'
        ),
        pytest.param('class A:\n    def __getattr__(self, name): return getattr(self, name)\nA().x', id='attributes'),
        pytest.param('class A:\n    def __repr__(self): return repr(self)\nrepr(A())', id='a repr of itself'),
        pytest.param(DEEP + 'repr(deep)', id='repr'),
        pytest.param(DEEP + 'import json; json.dumps(deep)', id='json out'),
        pytest.param('import json; json.loads("[" * 100_000)', id='json in'),
        pytest.param(DEEP + 'import pickle; pickle.dumps(deep)', id='pickle'),
        pytest.param(DEEP + 'import copy; copy.deepcopy(deep)', id='copy'),
        pytest.param(DEEP + 'other = [deep]; other[0] == [[]]; deep == [other]', id='comparison'),
        pytest.param('x = ()\nfor _ in range(200_000): x = (x,)\nhash(x); isinstance(1, x)', id='hash'),
        pytest.param('x = ()\nfor _ in range(10 ** 6): x = (x,)\ndel x', id='a million tuples at once'),
        pytest.param('compile("(" * 100_000 + ")" * 100_000, "x", "eval")', id='parentheses'),
        pytest.param('eval("-" * 100_000 + "1")', id='signs'),
        pytest.param('eval("+".join(["1"] * 100_000))', id='a long sum'),
        pytest.param('import ast; ast.literal_eval("[" * 50_000 + "]" * 50_000)', id='a literal'),
        pytest.param('import re; re.compile("(" * 5_000 + ")" * 5_000)', id='a regular expression'),
        pytest.param('x = iter([1])\nfor _ in range(100_000): x = map(str, x)\nlist(x)', id='nested iterators'),
        pytest.param('def g(n):\n    yield from g(n + 1)\nlist(g(0))', id='generators'),
        pytest.param('async def f(): await f()\nawait f()', id='coroutines'),
        pytest.param('e = ValueError()\nfor _ in range(5_000): e = ExceptionGroup("x", [e])\nraise e', id='groups'),
        pytest.param(DEEP + 'deep', id='as value'),
        pytest.param(DEEP + 'print(deep)', id='printed'),
    ],
)
async def test_recursion_without_end_is_an_error_and_no_more(patient: Sandbox, code: str) -> None:
    cell = await attack(patient, code)
    assert kind_of(cell) in {'exception', 'stack', 'broken', 'memory', None}


async def test_code_that_is_nested_too_deeply_is_refused(sandbox: Sandbox) -> None:
    cell = await attack(sandbox, '(' * 5_000 + '1' + ')' * 5_000)
    assert cell.error is not None
    assert 'too complex' in cell.error.message


async def test_values_that_share_their_parts_a_billion_times_come_back_in_part(patient: Sandbox) -> None:
    cell = await attack(patient, 'x = ["ha"] * 10\nfor _ in range(12): x = [x] * 10\nx')
    assert (cell.ok, cell.value) == (True, None)
    assert cell.text is not None
    assert '...' in cell.text
    assert len(cell.text) < 200_000
