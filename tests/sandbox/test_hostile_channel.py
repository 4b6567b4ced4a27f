"""Forged messages and forged answers. Everything the host reads from inside was written by an enemy."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.session import Sandbox
from habilis.sandbox.wasm import engine
from tests.sandbox.hostile import HOST, KERNEL, assert_right, attack, breaking_attack, kind_of, prepare
from tests.waiting import until

started: list[object] = []
ended: list[object] = []


def echo(value: object = None) -> object:
    return value


async def linger(seconds: float = 0, name: object = None) -> object:
    started.append(name)
    try:
        await asyncio.sleep(seconds)
    finally:
        ended.append(name)
    return name


@pytest.fixture
async def tooled() -> AsyncIterator[Sandbox]:
    """A sandbox with two tools."""
    started.clear()
    ended.clear()
    async with await Sandbox.create(limits=Limits(seconds=60, calls=50), tools=[echo, linger]) as made:
        yield made


# Messages to the host

REFUSED = [
    '',
    '\0',
    'zzz',
    '{"op": "run"}',
    'c',
    'c{',
    'c{}',
    'c[]',
    'cnull',
    'c["echo"]',
    'c["echo",5]',
    'c["echo",[],[]]',
    'c["echo",[]]',
    'c["echo",[[],[]]]',
    'c["echo",[{},{}]]',
    'c["echo",[[1],{}]] trailing',
    'c[5,[[],{}]]',
    'c[["echo"],[[],{}]]',
    'c["nope",[[],{}]]',
    'c["__class__",[[],{}]]',
    'c["linger",[[],{}]]',
    'c["echo",[[],{"no_such_parameter":1}]]',
    'c["echo",[[1,2,3],{}]]',
    'c["echo",[[{"$":"nope","v":1}],{}]]',
    'c["echo",[[{"$":["x"],"v":1}],{}]]',
    'c["echo",[[{"$":"set","v":[[1]]}],{}]]',
    'c["echo",[[{"$":"dict","v":[[1,2]]}],{}]]',
    'c["echo",[[],{"$":"dict","v":[{"$":"tuple","v":[1,2]}]}]]',
    'c["echo",[[{"$":"int","v":"0x"}],{}]]',
    'c["echo",[[{"$":"fraction","v":["1","0"]}],{}]]',
    'c["echo",[[{"$":"timedelta","v":[99999999999,0,0]}],{}]]',
    'c["echo",[[{"$":"bytes","v":"\\ud800"}],{}]]',
    's[1,"nope",[[],{}]]',
    's["1","linger",[[],{}]]',
    's[1.5,"linger",[[],{}]]',
    's[true,"linger",[[],{}]]',
    's[]',
    'i',
    'i["prompt"]',
]


@pytest.mark.parametrize('message', REFUSED)
async def test_a_malformed_message_is_refused_in_words(tooled: Sandbox, message: str) -> None:
    cell = await attack(tooled, HOST + f'host({message!r})')
    assert isinstance(cell.value, str)
    assert cell.value.startswith('{"error":["')
    assert not any(call.ok for call in cell.calls)
    assert started == []


@pytest.mark.parametrize(
    'message',
    [
        pytest.param('"c" + "[" * 100_000', id='deep call'),
        pytest.param('"s" + "[" * 100_000', id='deep submission'),
        pytest.param('"""c["echo",[[""" + "[" * 900 + "]" * 900 + """],{}]]"""', id='deep argument'),
        pytest.param('"c" + "{\\"a\\":" * 100_000', id='deep objects'),
        pytest.param('"""c["echo",[[""" + "9" * 5000 + """],{}]]"""', id='a number of 5000 digits'),
        pytest.param('"c[" + "[]," * 500_000 + "1]"', id='half a million lists'),
        pytest.param('"c" + "x" * 20_000_000', id='twenty megabytes'),
        pytest.param('"z" * 20_000_000', id='twenty megabytes of nothing'),
        pytest.param('"""c["%s",[[],{}]]""" % ("n" * 1_000_000)', id='a tool with a long name'),
    ],
)
async def test_a_huge_or_deep_message_is_refused_in_words(tooled: Sandbox, message: str) -> None:
    cell = await attack(tooled, HOST + f'host({message})')
    assert isinstance(cell.value, str)
    assert cell.value.startswith('{"error":["')
    assert len(cell.value) < 1000


async def test_a_message_larger_than_any_the_host_takes_ends_the_cell() -> None:
    async with await Sandbox.create(limits=Limits(seconds=60, memory_mb=1024)) as sandbox:
        cell = await attack(sandbox, HOST + 'host("z" * 300_000_000)')
    assert kind_of(cell) == 'broken'


async def test_a_message_of_too_many_parts_costs_the_host_no_memory(tooled: Sandbox) -> None:
    cell = await attack(tooled, HOST + 'host("c[" + "[]," * 9_000_000 + "1]")')
    assert 'parts' in str(cell.value)


@pytest.mark.parametrize(
    'message',
    ['5', 'None', "b'o'", "['o']", 'object()', r"'o\ud800'", "type('S', (str,), {'__str__': lambda s: 1 / 0})('zz')"],
)
async def test_a_message_that_is_not_text_breaks_at_most_the_sandbox(sandbox: Sandbox, message: str) -> None:
    cell = await attack(sandbox, HOST + f'host({message})')
    assert kind_of(cell) in {'broken', 'exception', None}


@pytest.mark.parametrize(
    ('number', 'value'), [('1e999', 'inf'), ('-1e999', '-inf'), ('NaN', 'nan'), ('Infinity', 'inf'), ('1e-999', '0.0')]
)
async def test_a_number_at_the_edge_arrives_as_what_it_is(tooled: Sandbox, number: str, value: str) -> None:
    cell = await attack(tooled, HOST + f"""host('c["echo",[[{number}],{{}}]]')""")
    assert [str(next(iter((call.arguments or {'': ''}).values()))) for call in cell.calls] == [value]


@pytest.mark.parametrize(
    'seconds', ['-5', '-1e999', 'NaN', '"5"', '[]', '{}', 'false', '', '5 5', '[' * 2000, '1e-300']
)
async def test_a_strange_wait_is_a_short_one(sandbox: Sandbox, seconds: str) -> None:
    cell = await attack(sandbox, HOST + f'host("w" + {seconds!r})')
    assert cell.value == '[]'


@pytest.mark.parametrize('seconds', ['1e999', '1' + '0' * 400, '99999999999999', 'null', 'Infinity'])
async def test_a_wait_for_ever_ends_at_the_time_limit(sandbox: Sandbox, seconds: str) -> None:
    cell = await attack(sandbox, HOST + f'host("w" + {seconds!r})', seconds=0.3)
    assert kind_of(cell) == 'time'


@pytest.mark.parametrize('number', ['1', '0', '-1', '', 'x', '²', '9' * 100, '9' * 100_000, '1.5', 'null'])
async def test_cancelling_what_does_not_run_does_nothing(tooled: Sandbox, number: str) -> None:
    assert (await attack(tooled, HOST + f'host("k" + {number!r})')).value == ''


async def test_a_number_in_use_cannot_be_used_again_and_no_call_outlives_its_cell(tooled: Sandbox) -> None:
    cell = await attack(tooled, HOST + """[host('s[7,"linger",[[60,%d],{}]]' % n) for n in range(3)]""")
    assert cell.value == ['', *['{"error":["RuntimeError","a call with this number is running"]}'] * 2]
    await until(lambda: len(ended) == len(started))
    assert sorted(map(str, started)) == sorted(map(str, ended))


async def test_answers_under_strange_numbers_come_back_under_them(tooled: Sandbox) -> None:
    numbers = ['-1', '0', '1' + '0' * 300]
    sending = f"""for n in {numbers}: host('s[%s,"linger",[[0,"x"],{{}}]]' % n)\n"""
    reading = 'import json\ngot = []\nwhile len(got) < 3: got += json.loads(host("w1"))\nsorted(str(n) for n, _ in got)'
    assert (await attack(tooled, HOST + sending + reading)).value == sorted(numbers)


async def test_a_call_that_fails_before_it_starts_is_on_record_too(tooled: Sandbox) -> None:
    cell = await attack(tooled, 'await linger(nonsense=1)')
    assert [(call.tool, call.arguments, call.ok) for call in cell.calls] == [('linger', {'nonsense': 1}, False)]


async def test_forged_calls_count_against_the_limit_of_calls(tooled: Sandbox) -> None:
    cell = await attack(tooled, HOST + """while True: host('c["echo",[[1],{}]]')""")
    assert (kind_of(cell), len(cell.calls)) == ('calls', 50)


async def test_forged_output_counts_against_the_limit_of_output() -> None:
    async with await Sandbox.create(limits=Limits(seconds=5, output_bytes=1000)) as sandbox:
        cell = await attack(sandbox, HOST + 'while True: host("o" + "x" * 300), host("e" + "y" * 100)')
    assert kind_of(cell) == 'output'
    assert len(cell.stdout) + len(cell.stderr) <= 1000


async def test_the_word_that_ends_a_cell_cannot_be_forged_into_another_kind(sandbox: Sandbox) -> None:
    cell = await attack(sandbox, KERNEL + 'kernel.bridge.send = lambda message: "!time"\nprint(1)')
    assert kind_of(cell) == 'broken'


# Answers to the host

FORGED = [
    'nonsense',
    '',
    '[1]',
    '5',
    'null',
    '"text"',
    '{"value":',
    '[' * 100_000,
    '{"text":5}',
    '{"text":["a"]}',
    '{"error":"x"}',
    '{"error":[]}',
    '{"error":{}}',
    '{"error":{"kind":"time"}}',
    '{"error":{"kind":"cancelled"}}',
    '{"error":{"kind":[]}}',
    '{"error":{"kind":{}}}',
    '{"error":{"kind":null}}',
    '{"value":{"$":"nope","v":1}}',
    '{"value":{"$":"set","v":[[]]}}',
    '{"value":' + '[' * 5000 + ']' * 5000 + '}',
    '{"displays":5}',
    '{"displays":[5]}',
    '{"displays":[["image/png","not base64!"]]}',
    '{"displays":[["text/html",5]]}',
    '{"state":5,"python":"x"}',
    '{"state":"x"}',
    '{"state":"","python":"","lost":5}',
]


@pytest.mark.parametrize('answer', FORGED)
async def test_a_forged_answer_makes_the_cell_broken_and_the_sandbox_new(sandbox: Sandbox, answer: str) -> None:
    await prepare(sandbox)
    await sandbox.run(KERNEL + f'type(kernel).enter = lambda self, message: {answer!r}')
    assert kind_of(await sandbox.run('1')) == 'broken'
    await assert_right(sandbox)


@pytest.mark.parametrize('answer', FORGED[:16])
async def test_a_forged_answer_at_the_very_end_of_a_cell_is_no_better(sandbox: Sandbox, answer: str) -> None:
    code = f'import habilis.sandbox.guest.kernel as module\nmodule.encode_answer = lambda answer, field: {answer!r}'
    assert kind_of(await attack(sandbox, code)) == 'broken'


@pytest.mark.parametrize('answer', ['5', 'None', "b'{}'", r"'\ud800'", '1 / 0', 'exit(3)', '"x" * 200_000_000'])
async def test_an_answer_that_is_not_text_makes_the_cell_broken(sandbox: Sandbox, answer: str) -> None:
    await prepare(sandbox)
    await sandbox.run(KERNEL + f'type(kernel).enter = lambda self, message: {answer}')
    assert kind_of(await sandbox.run('1')) in {'broken', 'exit'}
    await assert_right(sandbox)


@pytest.mark.parametrize(
    'sent', ["while True: host('a' + 'x' * 65536)", "host('a' + 'x' * 65536)", "host('a' + 'x' * 65537)", "host('a')"]
)
async def test_forged_pieces_of_an_answer_break_at_most_the_sandbox(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    monkeypatch.setattr(engine, 'MAX_MESSAGE', 1 << 20)
    assert kind_of(await attack(sandbox, HOST + sent)) == 'broken'


async def test_strange_fields_of_an_error_become_text(sandbox: Sandbox) -> None:
    forged = {'kind': 'exception', 'type': ['x'] * 1000, 'message': {'a': 'b' * 100_000}, 'traceback': 5, 'line': 'x'}
    cell = await attack(sandbox, KERNEL + f'kernel._explain = lambda error: {forged!r}\n1 / 0')
    assert cell.error is not None
    assert (cell.error.kind, cell.error.traceback, cell.error.line) == ('exception', '5', None)
    assert len(cell.error.type) <= 200
    assert len(cell.error.message) <= 10_000


@pytest.mark.parametrize(
    'value',
    [
        pytest.param('{"$": "set", "v": [(2**61 - 1) * i for i in range(1, 50_000)]}', id='a set of one hash'),
        pytest.param(
            '{"$": "dict", "v": [{"$": "tuple", "v": [(2**61 - 1) * i, 0]} for i in range(1, 50_000)]}',
            id='a dict of one hash',
        ),
        pytest.param('{"$": "fraction", "v": ["3" * 3_000_000, "7" * 2_999_999]}', id='a fraction to cancel'),
        pytest.param('[[]] * 1_000_000', id='a million lists'),
    ],
)
async def test_a_value_made_to_cost_the_host_time_costs_little(sandbox: Sandbox, value: str) -> None:
    await prepare(sandbox)
    forging = (
        f'import json\nforged = json.dumps({{"value": {value}}})\ntype(kernel).enter = lambda self, message: forged'
    )
    await sandbox.run(KERNEL + forging)
    start = time.process_time()
    await sandbox.run('1')
    assert time.process_time() - start < 10
    async with await Sandbox.create() as fresh:
        await prepare(fresh)
        await assert_right(fresh)


@pytest.mark.parametrize('operation', ['save', 'get', 'set', 'load'])
@pytest.mark.parametrize(
    'answer', ['{}', '[]', '{"values": 5}', '1 / 0', '{"state": 5}', '{"values": {"x": {"$": 1}}}']
)
async def test_a_forged_answer_to_a_request_is_an_error_of_the_sandbox(
    sandbox: Sandbox, operation: str, answer: str
) -> None:
    await prepare(sandbox)
    forging = f'import habilis.sandbox.guest.kernel as module\nmodule._HANDLERS[{operation!r}] = lambda k, r: {answer}'
    await sandbox.run(forging)
    for use in (sandbox.get_variables, sandbox.snapshot, lambda: sandbox.set_variables({'y': 1})):
        with contextlib.suppress(SandboxError):
            await use()
    for _ in range(2):
        assert kind_of(await sandbox.run('1')) in {None, 'broken'}
    await assert_right(sandbox)


async def test_a_forged_state_is_never_read_by_the_host_and_hurts_only_the_sandbox(sandbox: Sandbox) -> None:
    forging = "module._HANDLERS['save'] = lambda k, r: {'state': '!Ω', 'python': 'cpython 3.14'}\nx = [1]"
    await sandbox.run('import habilis.sandbox.guest.kernel as module\n' + forging)
    with pytest.raises(SandboxError):
        await sandbox.snapshot()
    assert kind_of(await sandbox.run('while True: pass', seconds=0.2)) == 'time'
    assert kind_of(await sandbox.run('x')) == 'broken'
    await prepare(sandbox)
    await assert_right(sandbox)


# Tools that are turned against the host


async def test_a_tool_that_runs_code_in_its_own_sandbox_gets_an_error() -> None:
    async def inner(code: str) -> object:
        return (await sandbox.run(code)).value

    sandbox = await Sandbox.create(tools=[inner], limits=Limits(seconds=5))
    async with sandbox:
        cell = await attack(sandbox, "await inner('1 + 1')")
    assert cell.error is not None
    assert 'in the sandbox that is calling it' in cell.error.message


async def test_a_plain_tool_that_runs_code_in_its_own_sandbox_gets_an_error() -> None:
    def inner(code: str) -> object:
        return asyncio.run(sandbox.run(code)).value

    sandbox = await Sandbox.create(tools=[inner], limits=Limits(seconds=5))
    async with sandbox:
        cell = await attack(sandbox, "inner('1 + 1')")
    assert cell.error is not None
    assert 'in the sandbox that is calling it' in cell.error.message


async def test_a_tool_may_run_code_in_another_sandbox_which_may_not_call_back() -> None:
    async def inner(code: str) -> object:
        cell = await other.run(code)
        return cell.value if cell.ok else str(cell.error)

    async def back() -> object:
        return (await sandbox.run('1')).value

    sandbox = await Sandbox.create(tools=[inner], limits=Limits(seconds=5))
    async with sandbox, await Sandbox.create(tools=[back], limits=Limits(seconds=5)) as other:
        assert (await attack(sandbox, "await inner('6 * 7')")).value == 42
        assert 'in the sandbox that is calling it' in str((await attack(sandbox, "await inner('await back()')")).value)


@pytest.mark.parametrize(
    ('value', 'reason'),
    [
        ('x = ["ha"] * 10\nfor _ in range(12): x = [x] * 10', 'more than 1,000,000 parts'),
        ('x = []\nfor _ in range(1000): x = [x]', 'nested deeper than 200 levels'),
        ('x = []\nx.append(x)', 'nested deeper than 200 levels'),
        ('x = [1, {"a": object()}]', "at [1]['a'] is not plain data"),
        ('x = type("L", (list,), {"__iter__": lambda self: iter(int, 1)})()', 'more than 1,000,000 parts'),
        ('x = lambda: 0', 'is not plain data'),
    ],
)
async def test_an_argument_that_is_no_plain_data_is_refused_by_name(tooled: Sandbox, value: str, reason: str) -> None:
    cell = await attack(tooled, f'{value}\ntry: echo(x)\nfinally: del x')
    assert cell.error is not None
    assert "argument 'value'" in cell.error.message
    assert reason in cell.error.message
    assert cell.calls == ()


async def test_a_tool_cannot_be_called_while_the_variables_are_saved(tooled: Sandbox) -> None:
    sneaky = 'class X:\n    def __reduce__(self):\n        echo("unseen")\n        return int, ()\nx = X()'
    cell = await attack(tooled, sneaky)
    assert cell.calls == ()
    assert (await tooled.snapshot()).lost == ('x',)


@pytest.mark.parametrize(
    'code',
    [
        'kernel.tools.clear(); kernel.tools["echo"] = print',
        'kernel.bridge.call = kernel.bridge.submit = None',
        'kernel.bridge._next_id = -10**30',
        'kernel.selector._waiting = None',
        'kernel.bridge.wait = lambda seconds: [(1, 2), 3]',
    ],
)
async def test_tampering_with_the_tools_inside_hurts_only_the_inside(tooled: Sandbox, code: str) -> None:
    await breaking_attack(tooled, KERNEL + code + '\nawait linger(0, 1)')
    assert started == ended


async def test_a_cell_keeps_only_so_many_megabytes_of_its_calls(sandbox: Sandbox) -> None:
    def take(data: list[str]) -> int:
        return len(data)

    async with await Sandbox.create(tools=[take], limits=Limits(seconds=30)) as busy:
        cell = await busy.run("x = ['a' * 100] * 50_000\nfor _ in range(6): take(x)")
        assert cell.ok
        assert [call.arguments is None for call in cell.calls] == [False, False, False, True, True, True]
