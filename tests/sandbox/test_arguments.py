"""Wrong arguments: every public method of the sandbox names the argument, and says what it should be."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from habilis.core.errors import SandboxError, WorkspaceError
from habilis.core.limits import Limits
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.pool import SandboxPool
from habilis.sandbox.session import Sandbox, SyncSandbox
from tests.cases import each_case

THING = object()
WRONG_SETTINGS: dict[str, list[object]] = {
    'limits': [5, 'x', {'seconds': 5}, True],
    'tools': [5, 'x', b'x', {'f': print}, [5], [None], ['print'], True, [int]],
    'variables': [5, 'x', [('a', 1)], {1: 2}, True],
    'workspace': [5, b'x', ['x'], 1.5, THING],
    'read_only': [None, 1],
    'protect': [None, 1, 'yes'],
    'mounts': [5, 'x', ['/data'], {'/data': 5}, {5: '/tmp'}, {'/data': None}],
    'env': [5, 'A=1', {'a': 1}, {1: 'a'}, {'a': None}, {'a': b'x'}],
    'packages': [5, b'x', {'a': 1}, [5], [None], [b'attrs'], True],
    'network': [5, b'x', {'a': 1}, [5], [None], 1.5],
    'code_rules': [5, 'x', {'imports': []}, True, CodeRules],
    'input': [5, 'x', [5], True],
    'checkpoints': [None, 0, 'no'],
    'allow_weak': [None, 1, 'yes'],
    'image': [None, 5, b'x'],
    'url': [None, 5, b'x'],
    'key': [None, 5, b'x'],
}
CASES = [(name, value) for name, values in WRONG_SETTINGS.items() for value in values]


def test_every_setting_is_in_the_table() -> None:
    assert WRONG_SETTINGS.keys() == SandboxSettings.__annotations__.keys()


@pytest.mark.parametrize(('name', 'value'), CASES, ids=[f'{name}={type(value).__name__}' for name, value in CASES])
async def test_a_setting_of_a_wrong_type_is_named(name: str, value: object) -> None:
    settings: Any = {name: value}
    for create in (lambda: Sandbox.create(**settings), lambda: Sandbox.create('wasm', **settings)):
        with pytest.raises((TypeError, SandboxError)) as raised:
            await create()
        assert_clear(raised.value, name)


@pytest.mark.parametrize('name', ['limits', 'tools', 'variables', 'workspace', 'mounts', 'env', 'packages', 'network'])
async def test_none_is_the_default(name: str) -> None:
    settings: Any = {name: None}
    async with await Sandbox.create(**settings) as sandbox:
        assert (await sandbox.run('1')).value == 1


@pytest.mark.parametrize(
    ('settings', 'word'),
    [
        ({'env': {'': 'x'}}, 'environment'),
        ({'env': {'a': 'x\0'}}, 'environment'),
        ({'env': {'a=b': 'x'}}, 'environment'),
        ({'mounts': {'data': '/tmp'}}, 'mount'),
        ({'mounts': {'/data': '/no/such/folder'}}, 'does not exist'),
        ({'mounts': {'/data': '/etc/passwd'}}, 'not a folder'),
        ({'mounts': {'/data': 'a\0b'}}, 'not the name'),
        ({'network': ['http://x']}, 'host'),
        ({'variables': {'a b': 1}}, "'a b'"),
        ({'variables': {'a': THING}}, "'a'"),
        ({'packages': ['']}, 'package'),
        ({'tools': [lambda: 1]}, 'lambda'),
        ({'workspace': 'a\0b'}, 'workspace'),
        ({'unknown': 1}, "'unknown'"),
    ],
)
async def test_a_setting_of_a_wrong_value_is_named(settings: Any, word: str) -> None:
    with pytest.raises((TypeError, SandboxError)) as raised:
        await Sandbox.create(**settings)
    assert_clear(raised.value, word)


WRONG_CALLS: dict[str, tuple[Callable[[Sandbox], Awaitable[object]], str]] = {
    'run(None)': (lambda box: box.run(as_any(None)), 'code'),
    'run(bytes)': (lambda box: box.run(as_any(b'1')), 'code'),
    'run(5)': (lambda box: box.run(as_any(5)), 'code'),
    'run(seconds=text)': (lambda box: box.run('1', seconds=as_any('5')), 'seconds'),
    'run(seconds=True)': (lambda box: box.run('1', seconds=as_any(True)), 'seconds'),
    'run(on_output=text)': (lambda box: box.run('1', on_output=as_any('x')), 'on_output'),
    'run(tools=5)': (lambda box: box.run('1', tools=as_any(5)), 'tools'),
    'run(tools=[5])': (lambda box: box.run('1', tools=as_any([5])), 'tools'),
    'set_variables(None)': (lambda box: box.set_variables(as_any(None)), 'variables'),
    'set_variables(list)': (lambda box: box.set_variables(as_any([1])), 'variables'),
    'set_variables(5: 1)': (lambda box: box.set_variables(as_any({5: 1})), 'variable'),
    'get_variables(5)': (lambda box: box.get_variables(as_any(5)), 'variable'),
    'get_variables(None)': (lambda box: box.get_variables(as_any(None)), 'variable'),
    'get_variables(list)': (lambda box: box.get_variables(as_any(['x'])), 'variable'),
    'set_tools(None)': (lambda box: box.set_tools(as_any(None)), 'tools'),
    'set_tools(text)': (lambda box: box.set_tools(as_any('print')), 'tools'),
    'set_tools([1])': (lambda box: box.set_tools(as_any([1])), 'tools'),
    'upload(5)': (lambda box: box.upload(as_any(5), b''), 'path'),
    'upload(None)': (lambda box: box.upload(as_any(None), b''), 'path'),
    'upload(bytes)': (lambda box: box.upload(as_any(b'x'), b''), 'path'),
    'upload(data=5)': (lambda box: box.upload('x', as_any(5)), "'x'"),
    'upload(data=None)': (lambda box: box.upload('x', as_any(None)), "'x'"),
    'upload(data=list)': (lambda box: box.upload('x', as_any(['a'])), "'x'"),
    'download(5)': (lambda box: box.download(as_any(5)), 'path'),
    'download(None)': (lambda box: box.download(as_any(None)), 'path'),
    'load_snapshot(text)': (lambda box: box.load_snapshot(as_any('x')), 'snapshot'),
    'load_snapshot(None)': (lambda box: box.load_snapshot(as_any(None)), 'snapshot'),
    'do_work(text)': (lambda box: box.do_work(as_any('ls'), 1), 'work'),
    'sibling(files=other)': (lambda box: box.sibling(files=as_any('other')), 'files'),
    'sibling(files=5)': (lambda box: box.sibling(files=as_any(5)), 'files'),
    'install(5)': (lambda box: box.install(as_any(5)), 'packages'),
    'install(list)': (lambda box: box.install(as_any(['attrs'])), 'packages'),
    'restore(text)': (lambda box: Sandbox.restore(as_any('x')), 'snapshot'),
    'restore(5)': (lambda box: Sandbox.restore(as_any(5)), 'snapshot'),
    'restore(bytes)': (lambda box: Sandbox.restore(b'x'), 'snapshot'),
    'create(5)': (lambda box: Sandbox.create(as_any(5)), 'backend'),
    'create(list)': (lambda box: Sandbox.create(as_any([])), 'backend'),
    'create(None)': (lambda box: Sandbox.create(as_any(None)), 'backend'),
    'create(unknown)': (lambda box: Sandbox.create('nothing'), 'backend'),
}


def as_any(value: object) -> Any:
    return value


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('space')


@pytest.fixture
async def box(folder: Path) -> AsyncIterator[Sandbox]:
    async with await Sandbox.create(workspace=folder) as made:
        yield made


@pytest.mark.parametrize('name', WRONG_CALLS)
async def test_a_wrong_argument_is_named_and_changes_nothing(box: Sandbox, name: str) -> None:
    call, word = WRONG_CALLS[name]
    await box.run('kept = 1')
    with pytest.raises((TypeError, SandboxError)) as raised:
        await call(box)
    assert_clear(raised.value, word)
    assert (await box.run('kept')).value == 1


def test_every_public_method_with_parameters_is_in_the_table() -> None:
    methods = {
        name
        for name, member in inspect.getmembers(Sandbox, callable)
        if not name.startswith('_') and len(inspect.signature(member).parameters) > 1
    }
    tested = {name.partition('(')[0] for name in WRONG_CALLS} | {'create_sync'}
    assert methods <= tested


async def test_code_rules_of_a_wrong_type_are_named(box: Sandbox) -> None:
    box.code_rules = as_any('math')
    with pytest.raises(TypeError, match='code_rules must be CodeRules'):
        await box.run('1')


def test_the_same_without_await() -> None:
    with pytest.raises(TypeError, match='limits must be'):
        SyncSandbox.create(limits=as_any(5))
    with pytest.raises(TypeError, match='snapshot'):
        SyncSandbox.restore(as_any('x'))
    with SyncSandbox.create() as sandbox:
        with pytest.raises(TypeError, match='code must be'):
            sandbox.run(as_any(None))
        with pytest.raises(SandboxError, match='workspace'):
            sandbox.upload('x', b'')


@pytest.mark.parametrize(
    ('arguments', 'word'),
    [
        ({'size': 'x'}, 'size'),
        ({'size': None}, 'size'),
        ({'size': 1.5}, 'size'),
        ({'size': True}, 'size'),
        ({'size': 1, 'warm': 'x'}, 'warm'),
        ({'size': 1, 'idle_seconds': 'x'}, 'idle_seconds'),
        ({'size': 1, 'timeout': 'x'}, 'timeout'),
    ],
)
async def test_a_wrong_argument_of_a_pool_is_named(arguments: Any, word: str) -> None:
    with pytest.raises(TypeError) as raised:
        SandboxPool(**arguments)
    assert_clear(raised.value, word)


async def test_a_wrong_argument_to_a_pool_is_named() -> None:
    async with SandboxPool(1) as pool:
        for call, word in (
            (lambda: pool.acquire(timeout=as_any('x')), 'timeout'),
            (lambda: pool.run(as_any(None)), 'code'),
            (lambda: pool.run('1', timeout=as_any('x')), 'timeout'),
            (lambda: pool.release(as_any(5)), 'sandbox'),
        ):
            with pytest.raises(TypeError) as raised:
                await call()
            assert_clear(raised.value, word)
        assert (await pool.run('1')).value == 1
    async with SandboxPool(1, warm=0, limits=as_any(5)) as pool:
        with pytest.raises(TypeError, match='limits must be'):
            await pool.run('1')


@each_case('value', ['5', None, True, [5], THING])
@each_case('name', ['seconds', 'memory_mb', 'output_bytes', 'calls', 'cpu'])
def test_a_limit_of_a_wrong_type_is_named(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf'Limits\.{name} must be a'):
        Limits(**{name: as_any(value)})


@each_case('value', ['math', 5, {'math': 1}, [5], ('a b',), ('',)])
@each_case('name', ['imports', 'allow'])
def test_names_in_code_rules_of_a_wrong_type_are_refused(name: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        CodeRules(**{name: as_any(value)})


async def test_a_read_only_workspace_is_not_written_by_the_host_either(tmp_path: Path) -> None:
    (tmp_path / 'there').write_text('x')
    for workspace in (tmp_path, True):
        async with await Sandbox.create(workspace=workspace, read_only=True) as sandbox:
            twin = await sandbox.fork()
            for one in (sandbox, twin):
                with pytest.raises(WorkspaceError, match='read-only'):
                    await one.upload('new', 'y')
                with pytest.raises(WorkspaceError, match='read-only'):
                    one.workspace.write('sub/new', b'y')
            await twin.close()
    assert [path.name for path in tmp_path.iterdir()] == ['there']


def assert_clear(error: BaseException, word: str) -> None:
    text = str(error)
    assert word in text, text
    assert not any(
        raw in text for raw in ('object has no attribute', 'not supported between', 'unhashable', "NoneType'")
    )
    assert len(text) < 400
