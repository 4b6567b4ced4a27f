"""Ways out of the sandbox that code has always tried: none leads anywhere."""

import os
import socket
import threading
from typing import cast

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.session import Sandbox
from tests.sandbox.hostile import HOST, KERNEL, attack, kind_of

# Modules that would lead out

NO_SUCH_THING = {'ModuleNotFoundError', 'ImportError', 'AttributeError', 'OSError', 'FileNotFoundError', 'RuntimeError'}


@pytest.mark.parametrize(
    'code',
    [
        'import js; js.process.env',
        'import pyodide',
        'import ctypes; ctypes.CDLL(None).system(b"id")',
        'import ctypes; ctypes.string_at(0)',
        'import _ctypes',
        'import mmap',
        'import resource',
        'import pty; pty.spawn("sh")',
        'import _posixsubprocess',
        'import importlib; importlib.import_module("/etc/passwd")',
        'import importlib; importlib.import_module("..etc", "etc")',
        'from importlib.machinery import SourceFileLoader as L; L("p", "/etc/passwd").load_module()',
        'from importlib.machinery import *\nExtensionFileLoader("x", "").create_module(ModuleSpec("x", 0, origin="x"))',
        'import runpy; runpy.run_path("/etc/passwd")',
        'import sys; sys.path.insert(0, "/usr/lib/python3"); import habilis.sandbox.session',
        'import habilis.sandbox.wasm.engine',
        'import wasmtime',
    ],
)
async def test_an_import_that_would_lead_out_fails_and_nothing_else_does(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code)
    assert cell.error is not None
    assert cell.error.type in NO_SUCH_THING


@pytest.mark.parametrize(
    'code',
    [
        'import subprocess; subprocess.run(["id"])',
        'import os; os.system("id")',
        'import os; os.popen("id").read()',
        'import os; os.execv("/bin/sh", ["sh"])',
        'import os; os.posix_spawn("/bin/sh", ["sh"], {})',
        'import os; os.fork()',
        'import os\nwhile True: os.fork()',
        'import os; os.kill(1, 9)',
        'import multiprocessing; multiprocessing.Process(target=print).start()',
        'from concurrent.futures import ProcessPoolExecutor as P; P().submit(print).result()',
        'import threading; threading.Thread(target=print).start()',
        'import _thread; _thread.start_new_thread(print, ())',
        'from concurrent.futures import ThreadPoolExecutor as P; P().submit(print).result()',
        '[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "Popen"][0](["id"])',
        'import asyncio; await asyncio.create_subprocess_exec("id")',
    ],
)
async def test_no_process_and_no_thread_can_be_started(sandbox: Sandbox, code: str) -> None:
    threads, pid = threading.active_count(), os.getpid()
    cell = await attack(sandbox, code)
    assert cell.error is not None
    assert kind_of(cell) == 'exception'
    assert (threading.active_count() <= threads + 2, os.getpid()) == (True, pid)


async def test_the_host_environment_is_not_inside(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_TEST_SECRET', 'swordfish')
    cell = await attack(sandbox, 'import os; dict(os.environ), [os.getenv(n) for n in ("HOME", "PATH", "USER")]')
    assert cell.value == ({}, [None, None, None])


async def test_only_the_environment_that_was_passed_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_TEST_SECRET', 'swordfish')
    async with await Sandbox.create(env={'GIVEN': 'yes'}) as sandbox:
        cell = await attack(sandbox, 'import os; dict(os.environ)')
    assert cell.value == {'GIVEN': 'yes'}


@pytest.mark.parametrize(
    'path',
    ['/etc/passwd', '/proc/self/environ', '/dev/null', '/', '.', '/python', '/workspace', '//etc/passwd', '../etc'],
)
async def test_without_a_workspace_there_are_no_files(sandbox: Sandbox, path: str) -> None:
    cell = await attack(sandbox, f'import os\nfor use in (open, os.listdir, os.stat):\n    use({path!r})')
    assert cell.error is not None
    assert cell.error.type in {'FileNotFoundError', 'PermissionError', 'OSError', 'NotADirectoryError'}
    assert 'root:' not in cell.error.traceback


async def test_no_open_file_of_the_host_is_inherited(sandbox: Sandbox) -> None:
    looking = 'import os\nfor n in range(3, 300):\n    try: os.fstat(n)\n    except OSError: pass\n    else: print(n)'
    assert (await attack(sandbox, looking)).stdout == ''


# The network


@pytest.mark.parametrize(
    'code',
    [
        'socket.create_connection(("127.0.0.1", PORT), timeout=1)',
        's = socket.socket(); s.connect(("127.0.0.1", PORT))',
        's = socket.socket(); s.setblocking(False); s.connect(("127.0.0.1", PORT))',
        's = socket.socket(socket.AF_INET6); s.connect(("::1", PORT))',
        's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("127.0.0.1", PORT))',
        's = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()',
        'socket.getaddrinfo("localhost", PORT)',
        'import urllib.request; urllib.request.urlopen("http://127.0.0.1:PORT/")',
        'import http.client; c = http.client.HTTPConnection("127.0.0.1", PORT); c.request("GET", "/")',
        'import asyncio; await asyncio.open_connection("127.0.0.1", PORT)',
    ],
)
async def test_no_connection_leaves_the_sandbox(sandbox: Sandbox, code: str) -> None:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        listener.listen()
        listener.setblocking(False)
        port = str(listener.getsockname()[1])
        cell = await attack(sandbox, 'import socket\n' + code.replace('PORT', port))
        assert cell.error is not None
        with pytest.raises(BlockingIOError):
            listener.accept()


# The interpreter's own insides


@pytest.mark.parametrize(
    'code',
    [
        pytest.param("__builtins__['__import__']('subprocess').run(['id'])", id='builtins as a dict'),
        pytest.param("getattr(__builtins__, 'ev' + 'al')('__import__(\"os\").system(\"id\")')", id='eval by parts'),
        pytest.param('().__class__.__base__.__subclasses__()[0].__init__.__globals__', id='globals of a slot wrapper'),
        pytest.param('(lambda: 0).__globals__["__builtins__"].open("/etc/passwd")', id='builtins of a function'),
        pytest.param(
            'import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nf.f_globals["os"].system("id")', id='frames'
        ),
        pytest.param('def g(): yield\nx = g()\nx.gi_frame.f_back.f_globals', id='frame of a generator'),
        pytest.param(
            'try: 1 / 0\nexcept Exception as e: e.__traceback__.tb_frame.f_back.f_locals["x"]', id='traceback'
        ),
        pytest.param('(lambda: 0).__code__.replace(co_code=b"\\xff" * 100)', id='bytecode that is none, not run'),
        pytest.param('import types; types.CodeType(0)', id='a code object from nothing'),
        pytest.param('"{0.__class__.__init__.__globals__}".format(1)', id='format string'),
        pytest.param('import marshal; marshal.loads(b"\\xe3" + b"\\x00" * 50)', id='marshal of noise'),
        pytest.param('import pickle; pickle.loads(b"cos\\nsystem\\n(S\'id\'\\ntR.")', id='pickle'),
        pytest.param('breakpoint()', id='debugger'),
        pytest.param('input("password? ")', id='input'),
        pytest.param('import code; code.interact()', id='console'),
        pytest.param('import site; site.getsitepackages()[0] + open("/x").read()', id='site'),
    ],
)
async def test_reaching_into_the_interpreter_reaches_nothing_of_the_host(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code)
    assert kind_of(cell) in {'exception', 'exit', None}
    assert 'root:' not in f'{cell.stdout}{cell.text}'


@pytest.mark.parametrize(
    'code',
    [
        pytest.param('def f(): pass\nf.__code__ = f.__code__.replace(co_code=b"\\xff" * 100)\nf()', id='bytecode'),
        pytest.param('def f(): pass\nf.__code__ = f.__code__.replace(co_stacksize=0, co_consts=())\nf()', id='stack'),
        pytest.param('import _testinternalcapi', id='test module'),
        pytest.param('import faulthandler; faulthandler._sigsegv()', id='segmentation fault'),
        pytest.param('import faulthandler; faulthandler._stack_overflow()', id='stack overflow in C'),
        pytest.param('import faulthandler; faulthandler._fatal_error_c_thread()', id='fatal error'),
        pytest.param('import os; os.abort()', id='abort'),
        pytest.param('import signal; signal.raise_signal(signal.SIGABRT)', id='signal'),
        pytest.param(
            'import sys; sys.breakpointhook = None; sys._clear_type_cache(); del sys.modules["sys"]', id='sys'
        ),
    ],
)
async def test_a_crash_of_the_interpreter_is_not_one_of_the_host(sandbox: Sandbox, code: str) -> None:
    cell = await attack(sandbox, code)
    assert kind_of(cell) in {'broken', 'exception', 'memory', 'time', 'stack', None}


@pytest.mark.parametrize(
    'find',
    [
        KERNEL,
        'import app; kernel = app.KERNEL\n',
        'import sys; kernel = sys.modules["app"].KERNEL\n',
        'import gc; gc.unfreeze(); kernel = [o for o in gc.get_objects() if type(o).__name__ == "Kernel"][0]\n',
        'kernel = time_sleep.__self__\n'.replace('time_sleep', '__import__("time").sleep'),
        'kernel = input.__self__\n',
    ],
)
async def test_finding_the_kernel_gives_nothing_that_a_cell_does_not_have(sandbox: Sandbox, find: str) -> None:
    cell = await attack(sandbox, find + 'sorted(kernel.tools), kernel.bridge.send("zz"), type(kernel).__name__')
    assert cell.value == ([], '{"error":["RuntimeError","unknown message"]}', 'Kernel')


async def test_the_channel_found_by_import_knows_only_the_tools_of_this_sandbox() -> None:
    def mine() -> int:
        return 1

    def other() -> int:
        msg = 'called from the wrong sandbox'
        raise AssertionError(msg)

    async with await Sandbox.create(tools=[mine]) as one, await Sandbox.create(tools=[other]) as two:
        assert (await two.run('1')).ok
        cell = await attack(one, HOST + """[host('c["%s",[[],{}]]' % name) for name in ('mine', 'other')]""")
    assert cell.value == ['{"ok":1}', '{"error":["NameError","there is no tool called \'other\'"]}']


# Two sandboxes


async def test_two_sandboxes_see_nothing_of_each_other(sandbox: Sandbox) -> None:
    async with await Sandbox.create(limits=Limits(seconds=5)) as other:
        await attack(sandbox, 'secret = 1; import json; json.secret = 2; import builtins; builtins.secret = 3')
        for code in ('secret', 'import json; json.secret', 'import builtins; builtins.secret'):
            cell = await other.run(code)
            assert cell.error is not None
            assert cell.error.type in {'NameError', 'AttributeError'}


async def test_random_numbers_differ_between_sandboxes_forks_and_successors(sandbox: Sandbox) -> None:
    draw = 'import random, secrets, uuid, os\n(random.random(), secrets.token_hex(), str(uuid.uuid4()), os.urandom(8))'
    drawn = [await sandbox.run(draw)]
    async with await sandbox.fork() as twin, await Sandbox.create() as other:
        drawn += [await twin.run(draw), await other.run(draw)]
    assert kind_of(await sandbox.run('while True: pass', seconds=0.2)) == 'time'
    drawn.append(await sandbox.run(draw))
    for column in zip(*(cast('tuple[object, ...]', cell.value) for cell in drawn), strict=True):
        assert len(set(column)) == len(drawn) == 4


async def test_a_fork_does_not_share_state_with_its_twin(sandbox: Sandbox) -> None:
    await sandbox.run("keep = 'kept'\nshared = [1]\ndef count(): shared.append(0); return len(shared)")
    async with await sandbox.fork() as twin:
        assert (await twin.run("keep = 'changed'; shared.append(2); count()")).value == 3
        assert kind_of(await attack(twin, 'import os; os.abort()')) == 'broken'
        assert (await sandbox.run('keep, list(shared), count()')).value == ('kept', [1], 2)
        assert (await twin.run('shared')).value == [1, 2, 0]


async def test_clocks_inside_are_coarse(sandbox: Sandbox) -> None:
    cell = await attack(sandbox, 'import time\n[time.perf_counter_ns() % 100_000, time.time_ns() % 100_000]')
    assert cell.value == [0, 0]
