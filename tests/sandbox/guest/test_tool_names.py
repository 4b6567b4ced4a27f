"""A cell cannot define the name of a tool, nor bind a reserved one: it is refused before any of it runs."""

import ast

import pytest

from habilis import Sandbox
from habilis.sandbox.contract import Cell
from habilis.sandbox.guest.tool_names import mentions_tool, refuse_tool_names
from tests.cases import each_case

TOOLS = {'notify', 'ask'}


def check(code: str) -> None:
    refuse_tool_names(ast.parse(code), code, '<cell 1>', TOOLS)


def check_reserved(code: str) -> None:
    refuse_tool_names(ast.parse(code), code, '<cell 1>', TOOLS, reserved=TOOLS)


@each_case(
    'code',
    [
        'def notify(text): print(text)',
        'async def notify(text): print(text)',
        'class notify: pass',
        '@notify\ndef ask(): pass',
        'if False:\n    while True:\n        def notify(): pass',
        'notify = 1\ndef notify(): pass',
        'def f():\n    global notify\n    def notify(): pass',
    ],
)
def test_a_definition_of_the_name_of_a_tool_at_module_level_is_refused(code: str) -> None:
    with pytest.raises(SyntaxError, match=r"^'(notify|ask)' is a tool and already defined: leave this definition out"):
        check(code)


@each_case(
    'code',
    [
        'notify = 1',
        'notify = lambda text: None',
        'a = notify = 1',
        '(a, *notify) = 1, 2',
        'notify += 1',
        'notify: int = 1',
        'print(notify := 1)',
        '[notify := n for n in range(3)]',
        'f = lambda x=(notify := 1): x',
        'def notify(text): print(text)',
        'async def notify(text): print(text)',
        'class notify: pass',
        '@notify\ndef ask(): pass',
        'for notify in range(3): pass',
        'with open("x") as notify: pass',
        'try: pass\nexcept ValueError as notify: pass',
        'match 1:\n    case notify: pass',
        'match 1:\n    case [1, *notify]: pass',
        'match 1:\n    case {"a": 1, **notify}: pass',
        'match 1:\n    case int() as notify: pass',
        'import math as notify',
        'from math import pi as notify',
        'del notify',
        'if False:\n    while True:\n        notify = 1',
        'def f():\n    global notify\n    notify = 1',
        'def f():\n    global notify\n    def notify(): pass',
        'def f():\n    def g():\n        global x, notify\n        [notify := n for n in range(3)]',
        'class A:\n    global notify\n    notify = 1',
        'class A:\n    def f(self):\n        global notify\n        del notify',
    ],
)
def test_whatever_binds_or_deletes_a_reserved_name_at_module_level_is_refused(code: str) -> None:
    with pytest.raises(SyntaxError, match=r"^(cannot (assign to|delete) )?'(notify|ask)'(:| is a tool and)"):
        check_reserved(code)
    if 'def notify' not in code and 'class notify' not in code and 'def ask' not in code:
        check(code)


@pytest.mark.parametrize(
    'code',
    ['import notify', 'import notify.mail', 'from tools import notify', 'from tools import (\n    send,\n    ask,\n)'],
)
def test_the_import_of_a_reserved_name_is_refused_with_the_advice_to_leave_it_out(code: str) -> None:
    with pytest.raises(SyntaxError, match=r"^'(notify|ask)' is a tool and already defined: do not import it"):
        check_reserved(code)
    check(code)


@each_case(
    'code',
    [
        'notify("x")',
        'send = notify',
        'notify: int',
        'a.notify = 1; a["notify"] = 2',
        'f(notify=1)',
        'def f(notify, *ask): return notify',
        'def f():\n    notify = 1\n    import ask\n    del notify',
        'def f():\n    global notify\n    notify("x")',
        'def f():\n    def g():\n        global notify\n    notify = 1',
        'f = lambda notify: (ask := notify)',
        '[notify for notify in range(3)]',
        '{ask: notify for ask, notify in {}.items()}',
        'class A:\n    notify = 1\n    def ask(self): pass',
        'from tools import notify as send',
        'notify_all = 1; task = 2',
    ],
)
def test_names_that_are_local_or_belong_to_something_else_stay_allowed(code: str) -> None:
    check_reserved(code)


def test_the_error_points_at_the_name() -> None:
    with pytest.raises(SyntaxError) as caught:
        check_reserved('x = 1\nif x:\n    "é"; notify = 2\nask = 3')
    error = caught.value
    assert (error.filename, error.lineno, error.offset, error.end_offset) == ('<cell 1>', 3, 10, 16)
    assert error.text == '    "é"; notify = 2'


def test_only_code_that_can_contain_a_tools_name_is_worth_a_look() -> None:
    assert not mentions_tool('x = 1', TOOLS)
    assert mentions_tool('notify = 1', TOOLS)
    assert mentions_tool('ｎotify = 1', TOOLS)  # Python reads it as `notify`
    with pytest.raises(SyntaxError, match="'notify'"):
        check_reserved('ｎotify = 1')


def test_a_tree_deeper_than_the_stack_is_looked_at() -> None:
    tree = ast.parse('notify = x')
    assign = tree.body[0]
    assert isinstance(assign, ast.Assign)
    for _ in range(5000):
        assign.value = ast.UnaryOp(ast.Not(), assign.value)
    with pytest.raises(SyntaxError, match='notify'):
        refuse_tool_names(tree, 'notify = x', '<cell 1>', TOOLS, reserved=TOOLS)
    while isinstance(assign.value, ast.UnaryOp):  # freed node by node: at once it would need the stack, too
        assign.value = assign.value.operand


# Through the sandbox --------------------------------------------------------------------------------------------------


class Notifications:
    def __init__(self) -> None:
        self.sent: list[str] = []

    def notify(self, text: str) -> None:
        """Send a message."""
        self.sent.append(text)


def refusal(cell: Cell) -> str:
    assert cell.error is not None
    assert (cell.error.kind, cell.error.type) == ('syntax', 'SyntaxError')
    return cell.error.message


async def test_a_stub_of_a_tool_is_refused_and_nothing_of_its_cell_runs() -> None:
    notifications = Notifications()
    async with await Sandbox.create(tools=[notifications.notify]) as sandbox:
        cell = await sandbox.run('print("start")\ndef notify(msg):\n    print(msg)\nnotify("hello")')
        assert refusal(cell).startswith("'notify' is a tool and already defined: leave this definition out")
        assert cell.error is not None
        assert cell.error.line == 2
        assert "    def notify(msg):\n        ^^^^^^\nSyntaxError: 'notify' is a tool" in cell.error.traceback
        assert (cell.stdout, notifications.sent) == ('', [])
        assert (await sandbox.run('notify("real")')).ok
    assert notifications.sent == ['real']


async def test_only_tools_that_are_offered_now_count() -> None:
    tool = Notifications().notify
    async with await Sandbox.create() as sandbox:
        assert (await sandbox.run('def notify(): return 1')).ok
        assert refusal(await sandbox.run('def notify(): return 2', tools=[tool]))
        assert (await sandbox.run('notify(), tools', tools=[])).text == '(1, <tools none>)'


async def test_a_variable_that_the_host_has_put_over_a_tool_can_be_assigned() -> None:
    async with await Sandbox.create(tools=[Notifications().notify], variables={'notify': 1}) as sandbox:
        assert (await sandbox.run('notify += 1\nnotify')).value == 2
    async with await Sandbox.create(tools=[Notifications().notify]) as sandbox:
        await sandbox.set_variables({'notify': 5})
        assert (await sandbox.run('notify += 1\nnotify')).value == 6


async def test_a_restored_sandbox_refuses_the_names_of_its_tools_too() -> None:
    tool = Notifications().notify
    async with await Sandbox.create(tools=[tool]) as sandbox:
        await sandbox.run('x = 1')
        twin = await sandbox.fork()
        async with twin:
            assert refusal(await twin.run('def notify(): return x'))
            assert (await twin.run('x')).value == 1
