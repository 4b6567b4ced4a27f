"""Cells that tamper with the interpreter they run in. They may break it; the host says so and goes on."""

import asyncio
import pickle
from pathlib import Path

import pytest

from habilis.core.errors import SandboxError, SnapshotError
from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell
from habilis.sandbox.session import Sandbox
from tests.sandbox.hostile import KERNEL, assert_right, attack, breaking_attack, kind_of, prepare
from tests.waiting import until

# Modules that the kernel uses

ALL_GONE = 'for name in list(vars(module)):\n    if not name.startswith("__"): setattr(module, name, None)'


@pytest.mark.parametrize(
    'name',
    ['json', 'json.encoder', 'time', 'ast', 'pickle', 'cloudpickle', 'asyncio', 'asyncio.base_events', 'asyncio.events',
     'linecache', 'traceback', 'base64', 'io', 'os', 'types', 'inspect', 'importlib', 'marshal', 'random', 'math',
     'reprlib', 'errno', 'warnings', 'collections.abc', 'typing', 'functools', 'habilis.core.codec',
     'habilis.sandbox.guest.kernel', 'habilis.sandbox.guest.state', 'habilis.sandbox.guest.bridge',
     'habilis.sandbox.guest.output', 'habilis.sandbox.guest.tracebacks', 'habilis.sandbox.guest.value_text', 'app'],
)  # fmt: skip
async def test_emptying_a_module_the_kernel_uses_breaks_at_most_the_kernel(sandbox: Sandbox, name: str) -> None:
    await breaking_attack(sandbox, f'import {name}\nmodule = __import__("sys").modules[{name!r}]\n{ALL_GONE}')


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('import builtins\nfor n in list(vars(builtins)): vars(builtins).pop(n)', id='builtins gone'),
        pytest.param('import builtins as b\nb.len = b.isinstance = b.str = b.type = b.dict = None', id='builtins none'),
        pytest.param('import builtins\nbuiltins.isinstance = lambda *a: True', id='isinstance'),
        pytest.param('import builtins\nbuiltins.__import__ = None', id='import'),
        pytest.param('import builtins\nbuiltins.compile = builtins.eval = builtins.exec = print', id='eval'),
        pytest.param('import builtins\nbuiltins.BaseException = builtins.Exception = int', id='exceptions'),
        pytest.param('import sys\nsys.modules.clear()', id='modules cleared'),
        pytest.param('import sys\nfor n in list(sys.modules): sys.modules[n] = None', id='modules none'),
        pytest.param('import sys\nsys.modules["json"] = sys.modules["__main__"] = sys', id='modules swapped'),
        pytest.param('import sys\nsys.meta_path.clear(); sys.path_hooks.clear(); sys.path.clear()', id='finders'),
        pytest.param('import sys\nsys.stdout = sys.stderr = sys.stdin = None', id='streams none'),
        pytest.param('import sys\nsys.stdout.close(); sys.stderr.close(); print(1)', id='streams closed'),
        pytest.param('import sys\nsys.stdout.__class__ = type("S", (), {})', id='class of a stream'),
        pytest.param('import sys\nsys.stdout.pending = None\nsys.stdout.writes = "x"', id='insides of a stream'),
        pytest.param('import sys\nfor n in list(vars(type(sys.stdout))): type(sys.stdout).write = None', id='no write'),
        pytest.param(
            'import os\nfor n in range(10):\n    try: os.close(n)\n    except OSError: pass', id='descriptors'
        ),
        pytest.param('import sys\nsys.excepthook = sys.unraisablehook = sys.displayhook = None\n1 / 0', id='hooks'),
        pytest.param('import sys\nsys.addaudithook(lambda *a: 1 / 0)', id='an audit hook'),
        pytest.param('import sys\nsys.settrace(lambda *a: 1 / 0)', id='a trace function'),
        pytest.param('import sys\nsys.setprofile(lambda *a: 1 / 0)', id='a profile function'),
        pytest.param(
            'from sys import monitoring as m\nm.use_tool_id(0, "x")\nstart = m.events.PY_START\n'
            'm.register_callback(0, start, lambda *a: 1 / 0)\nm.set_events(0, start)',
            id='monitoring',
        ),
        pytest.param('import sys\nsys.setrecursionlimit(30)', id='a low recursion limit'),
        pytest.param('import sys\nsys.set_int_max_str_digits(0)\n10 ** 10_000', id='numbers without limit'),
        pytest.param('import warnings\nwarnings.simplefilter("error")', id='warnings are errors'),
        pytest.param('import gc\ngc.disable(); gc.set_threshold(1); gc.set_debug(gc.DEBUG_LEAK)', id='gc settings'),
        pytest.param('import gc\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.collect()', id='gc callbacks'),
        pytest.param('import locale, decimal\ndecimal.getcontext().prec = 1', id='decimal context'),
        pytest.param('import asyncio\nasyncio.set_event_loop(asyncio.new_event_loop())', id='event loop'),
        pytest.param('import asyncio\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(0)', id='loop stopped'),
        pytest.param('import asyncio\nasyncio.get_running_loop().close()', id='loop closed'),
        pytest.param('import asyncio\nasyncio.current_task().cancel()\nawait asyncio.sleep(0)', id='task cancelled'),
        pytest.param('import os\nos.chdir = os.getcwd = os.environ = None', id='os'),
        pytest.param(
            'import gc\ngc.unfreeze()\nfor o in gc.get_objects():\n    if type(o) is dict: o.clear()', id='dicts'
        ),
        pytest.param(
            'import gc\nfor o in gc.get_objects():\n    try: o.clear()\n    except BaseException: 0', id='clear'
        ),
    ],
)
async def test_tampering_with_the_interpreter_breaks_at_most_the_interpreter(sandbox: Sandbox, code: str) -> None:
    await breaking_attack(sandbox, code)


@pytest.mark.parametrize(
    'code',
    [
        'vars(kernel).clear()',
        'kernel.bridge = None',
        'kernel.bridge.send = None',
        'kernel.bridge.send = lambda message: message',
        'kernel.run_cell = lambda *a: 5',
        'kernel.run_cell = lambda *a: {1: object()}',
        'kernel.__class__ = type("X", (type(kernel),), {"enter": lambda self, message: \'{"value":1}\'})',
        'kernel.stdout = kernel.stderr = None',
        'kernel.displays = None',
        'kernel.loop = 5',
        'kernel.cells = "x"',
        'kernel.quick = 5',
        'kernel.code_rules = 5',
        'kernel.enter(\'{"op":"run","code":"while True: break"}\')',
        'kernel.enter("rkernel.enter(\'r1 + 1\')")',
        'kernel.enter(\'{"op":"load","state":"AAAA","python":"cpython 3.14"}\')',
        'kernel.reset()\nkeep = "kept"',
        'kernel.install()',
        'type(kernel).run = type(kernel).save = type(kernel).load = None',
        'import app\napp.WitWorld.enter = lambda self, message: "{}"',
        'import app\napp.KERNEL = None',
    ],
)
async def test_tampering_with_the_kernel_breaks_at_most_the_kernel(sandbox: Sandbox, code: str) -> None:
    await breaking_attack(sandbox, KERNEL + code)


@pytest.mark.parametrize(
    'code',
    [
        'globals().clear()\nkeep = "kept"',
        'globals()[1] = 2',
        'globals()[" value"] = 5',
        'del display\n__name__ = None',
        'class S(str):\n    __hash__ = str.__hash__\n    def __eq__(self, o): 1 / 0\nglobals()[S("q")] = 2',
        'class S(str):\n    __hash__ = str.__hash__\n    def __eq__(self, o): 1 / 0\nglobals()[S("keep")] = 2',
    ],
)
async def test_tampering_with_the_variables_breaks_at_most_the_sandbox(sandbox: Sandbox, code: str) -> None:
    await breaking_attack(sandbox, code)


@pytest.mark.parametrize('code', ['kernel.loop = 5', 'import asyncio.base_events as b\nb.collections = b.time = None'])
async def test_tampering_with_the_event_loop_breaks_at_most_the_kernel(sandbox: Sandbox, code: str) -> None:
    await prepare(sandbox)
    await sandbox.run(KERNEL + code)
    waiting = 'async def f(): return 1\nawait f()'
    assert kind_of(await sandbox.run(waiting)) == 'broken'
    assert (await sandbox.run(waiting)).value == 1
    await assert_right(sandbox)


# Ending


@pytest.mark.parametrize(
    ('code', 'kind'),
    [
        ('exit()', None),
        ('quit(0)', None),
        ('import sys; sys.exit()', None),
        ('import sys; sys.exit(3)', 'exit'),
        ('import sys; sys.exit("bye")', 'exit'),
        ('raise SystemExit(object())', 'exit'),
        ('import asyncio\nasync def f(): exit(2)\nawait asyncio.gather(f(), f())', 'exit'),
        ('import os; os._exit(0)', 'exit'),
        ('import os; os._exit(3)', 'exit'),
        ('import os; os.abort()', 'broken'),
        ('raise KeyboardInterrupt', 'exception'),
        ('raise GeneratorExit', 'exception'),
        ('raise BaseException', 'exception'),
        ('raise StopIteration', 'exception'),
        ('raise MemoryError', 'memory'),
        ('raise type("E", (BaseException,), {"__str__": lambda s: 1 / 0, "__repr__": None})', 'exception'),
        ('e = ValueError(); e.__cause__ = e.__context__ = e; raise e', 'exception'),
        ('raise type("E", (Exception,), {"__module__": 5, "__qualname__": "x"})', 'exception'),
        ('raise type("E\\ud800", (Exception,), {})("\\ud800")', 'exception'),
    ],
)
async def test_every_way_to_end_a_cell_ends_that_cell_only(sandbox: Sandbox, code: str, kind: str | None) -> None:
    assert kind_of(await attack(sandbox, code)) == kind


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('import atexit\natexit.register(lambda: 1 / 0)', id='atexit'),
        pytest.param('import atexit\natexit.register(print, "x")\natexit._run_exitfuncs()', id='atexit, run'),
        pytest.param(
            'def g():\n    try: yield 1\n    finally: print("late")\nx = g(); next(x)', id='an open generator'
        ),
        pytest.param(
            'async def g():\n    try: yield 1\n    finally: print("late")\nx = g(); await anext(x)', id='async'
        ),
        pytest.param(
            'def g():\n    while True:\n        try: yield\n        except BaseException: 0\nx = g(); next(x)',
            id='stubborn',
        ),
        pytest.param('class A:\n    def __del__(self): print("late"); raise ValueError\na = A()', id='a destructor'),
        pytest.param('class A:\n    def __del__(self): exit(3)\nA()\nNone', id='a destructor that exits'),
        pytest.param('class A:\n    def __del__(self): globals()["keep"] = 0\nA()\nkeep = "kept"', id='that changes'),
        pytest.param('class A:\n    def __del__(self): globals()["a"] = A()\na = A()\ndel a', id='that comes back'),
        pytest.param('import weakref\nclass A: 0\na = A()\nweakref.finalize(a, exit, 3)\ndel a', id='a finalizer'),
        pytest.param(
            'import asyncio\nt = asyncio.ensure_future(asyncio.sleep(99))\nawait asyncio.sleep(0)', id='a task'
        ),
        pytest.param(
            'import asyncio\nasync def f(): 1 / 0\nt = asyncio.ensure_future(f())', id='a task that fails later'
        ),
        pytest.param('async def f(): pass\nx = f()', id='a coroutine nobody awaits'),
        pytest.param('import contextlib, sys\nc = contextlib.redirect_stdout(None); c.__enter__()', id='a redirection'),
        pytest.param('import unittest.mock as m\nm.patch("json.dumps", None).start()', id='a patch left on'),
        pytest.param(
            'import signal\nsignal.signal(signal.SIGINT, lambda *a: 1 / 0)\nsignal.raise_signal(2)', id='signals'
        ),
    ],
)
async def test_what_a_cell_leaves_behind_does_not_disturb_the_next(sandbox: Sandbox, code: str) -> None:
    await attack(sandbox, code)


# Values that are more than data


@pytest.mark.parametrize('made', ['(open, (PATH, "w"))', '(os.mkdir, (PATH,))', '(eval, ("open(PATH, \'w\')",))'])
async def test_the_host_never_unpickles_what_comes_out(sandbox: Sandbox, tmp_path: Path, made: str) -> None:
    trap = tmp_path / 'trap'
    await prepare(sandbox)
    code = f'import os\nclass X:\n    def __reduce__(self): return {made.replace("PATH", repr(str(trap)))}\nx = X()\nx'
    cell = await sandbox.run(code)
    assert cell.value is None
    assert cell.text is not None
    assert 'X object' in cell.text
    data = await sandbox.snapshot()
    assert type(pickle.loads(pickle.dumps(bytes(data)))) is bytes
    with pytest.raises(SandboxError, match='is not plain data'):
        await sandbox.get_variables('x')
    with pytest.raises(SnapshotError):
        await Sandbox.restore(data)
    assert not trap.exists()
    await assert_right(sandbox)


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'habilis snapshot ',
        b'habilis snapshot 2\n{}\n',
        b'habilis snapshot 1\n',
        b'habilis snapshot 1\n' + b'[' * 100_000 + b'\n',
        b'habilis snapshot 1\n00000000\n',
        b'habilis snapshot 1\n00000000\n{"python":"cpython 3.14","cells":0,"lost":[]}\n',
    ],
)
async def test_a_snapshot_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        await Sandbox.restore(data)


@pytest.mark.parametrize(
    ('code', 'stdout', 'stderr'),
    [
        (r"import os; os.write(1, b'\xff\xfe ok \xc3')", '�� ok �', ''),
        (r"import os; os.write(2, b'\xed\xa0\x80')", '', '���'),
        (r"import os; os.write(1, b'\xc3'); os.write(1, b'\xa9')", 'é', ''),
        (r"print('\ud800 \udfff')", '\\ud800 \\udfff\n', ''),
        (r"import sys; print('\udc80', file=sys.stderr)", '', '\\udc80\n'),
        (r"print('\0\x1b[2J')", '\0\x1b[2J\n', ''),
        (r"print('\U0001f600')", '\U0001f600\n', ''),
    ],
)
async def test_text_that_is_no_text_is_shown_as_well_as_can_be(
    sandbox: Sandbox, code: str, stdout: str, stderr: str
) -> None:
    cell = await attack(sandbox, code)
    assert (cell.stdout, cell.stderr, cell.error) == (stdout, stderr, None)


async def test_half_a_surrogate_pair_comes_back_and_goes_to_tools_unchanged() -> None:
    def echo(text: str) -> str:
        return text

    async with await Sandbox.create(tools=[echo], limits=Limits(seconds=5)) as sandbox:
        cell = await attack(sandbox, r"x = '\ud800'" + '\n(x, echo(x) == x)')
        assert cell.value == ('\ud800', True)
        assert cell.calls[0].arguments == {'text': '\ud800'}
        assert (await sandbox.run("'\ud800' == x")).value in {True, None}
        await assert_right(sandbox)


@pytest.mark.parametrize(
    'code',
    [
        'class L(list):\n    def __iter__(self):\n        while True: yield 0\nL([1])',
        'class S(str):\n    def __str__(self): 1 / 0\n    __repr__ = __str__\nS("x")',
        'class I(int):\n    def __index__(self): 1 / 0\n    __int__ = __pos__ = __hash__ = __index__\nI(5)',
        'class D(dict):\n    def items(self): yield 1\nD(a=1)',
        'class T:\n    __class__ = int\nT()',
        'class R:\n    def __repr__(self): return 5\nR()',
        'class R:\n    def __repr__(self): exit(3)\nR()',
        'class R:\n    def _repr_html_(self): return 1 / 0\nR()',
        'class R:\n    def _repr_png_(self): return "not bytes"\nR()',
        'for _ in range(5000): display(1)',
        'x = []; x.append(x); x',
        'x = {}; x["x"] = x; x',
        '__import__("decimal").Decimal("sNaN")',
        '__import__("datetime").datetime.max',
    ],
)
async def test_a_value_that_lies_about_itself_does_not_disturb_the_host(sandbox: Sandbox, code: str) -> None:
    assert len((await attack(sandbox, code)).displays) <= 1000


# Several at once


async def test_cells_run_at_once_in_one_sandbox_do_not_mix_their_output(sandbox: Sandbox) -> None:
    code = 'import asyncio\nfor i in range(3):\n    print("{n}")\n    await asyncio.sleep(0.001)\n{n}'
    cells = await asyncio.gather(*(sandbox.run(code.replace('{n}', str(n))) for n in range(20)))
    assert [(cell.value, cell.stdout) for cell in cells] == [(n, f'{n}\n' * 3) for n in range(20)]


async def test_an_attack_among_cells_of_other_tasks_is_theirs_alone(sandbox: Sandbox) -> None:
    await prepare(sandbox)
    codes = ['6 * 7', 'import os; os.abort()', '6 * 7', '1 / 0', '6 * 7', 'exit(3)', '6 * 7']
    cells = await asyncio.gather(*map(sandbox.run, codes))
    assert [kind_of(cell) for cell in cells] == [None, 'broken', None, 'exception', None, 'exit', None]
    await assert_right(sandbox)


@pytest.mark.parametrize('code', ['while True: pass', 'import time; time.sleep(100)', 'while True: print("x" * 10)'])
async def test_a_cancelled_cell_says_so_and_the_next_one_runs(sandbox: Sandbox, code: str) -> None:
    await prepare(sandbox)
    assert sandbox.cancel() is False
    running = asyncio.create_task(sandbox.run(f'try:\n    {code}\nexcept BaseException: pass'))
    await asyncio.sleep(0.05)
    await until(sandbox.cancel)
    cell: Cell = await running
    assert kind_of(cell) in {'cancelled', 'output'}
    await assert_right(sandbox)


async def test_a_task_that_is_cancelled_while_its_cell_runs_leaves_the_sandbox_usable(sandbox: Sandbox) -> None:
    await prepare(sandbox)
    for wait in (0, 0.001, 0.01, 0.05):
        running = asyncio.create_task(sandbox.run('while True: pass'))
        await asyncio.sleep(wait)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await assert_right(sandbox)


async def test_closing_ends_a_cell_that_runs() -> None:
    sandbox = await Sandbox.create()
    running = asyncio.create_task(sandbox.run('while True: pass'))
    await asyncio.sleep(0.05)
    await asyncio.wait_for(sandbox.close(), 5)
    assert kind_of(await running) == 'cancelled'
    with pytest.raises(SandboxError, match='closed'):
        await sandbox.run('1')
