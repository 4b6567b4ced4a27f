"""What a small model forgets is said in one line."""

from dataclasses import replace

import pytest

from habilis.agent.policies.hints import hints_for, uncalled
from habilis.agent.signs import guessed
from habilis.sandbox.contract import Cell, CellError, ErrorKind
from habilis.sandbox import ToolCall

NAMES = ['search', 'search_files', 'total_price', 'rows']


def hints(code: str, cell: Cell, *, can_stop: bool = True) -> list[str]:
    return hints_for(code, cell, names=NAMES, can_stop=can_stop)


def failed(type_: str, message: str, kind: ErrorKind = 'exception') -> Cell:
    return Cell(error=CellError(kind=kind, type=type_, message=message))


def test_a_function_that_was_defined_but_not_called() -> None:
    code = 'import math\n\ndef area(r):\n    """Of a circle."""\n    return math.pi * r ** 2\n'
    assert hints(code, Cell()) == ['You defined area but did not call it. Call it and print the result.']


def test_several_of_them() -> None:
    assert 'You defined one, two but' in hints('def one(): pass\nasync def two(): one.x\n', Cell())[0]


@pytest.mark.parametrize(
    ('code', 'expected'),
    [
        ('def f(): pass', ['f']),
        ('async def f(): pass', ['f']),
        ('X = 3\nclass A: pass\ndef f(): return X', ['f']),
        ('def f(): return g()\ndef g(): return 1', ['f']),
        ('def f(n): return f(n - 1)', ['f']),
        ('def f(n): return f(n - 1)\nx = f(1)', []),
        ('def f(): pass\nf()', []),
        ('def f(): pass\nx = f()', []),
        ('class A: pass', []),
        ('x = 1', []),
        ('', []),
        ('def f(:', []),
        ('\0', []),
        ('(' * 5000, []),
        ("import re\ndef f(): return re.compile('\\d')", ['f']),
    ],
)
def test_only_code_that_does_nothing_but_define_is_meant(code: str, expected: list[str]) -> None:
    assert uncalled(code) == expected


def test_code_that_prints_nothing() -> None:
    assert hints('x = 1', Cell()) == ['Nothing was printed: print what you need to see.']
    assert hints('x = 1', Cell(stdout='\n')) == ['Nothing was printed: print what you need to see.']


@pytest.mark.parametrize(
    'cell',
    [
        Cell(text='<coroutine object f at 0x1>'),
        Cell(stdout='Sum: <coroutine object HostSelector.call at 0x5e16d8>\n'),
        Cell(stderr="RuntimeWarning: coroutine 'HostSelector.call' was never awaited\n"),
        failed('TypeError', "unsupported operand type(s) for +: 'coroutine' and 'int'"),
    ],
)
def test_a_coroutine_that_was_not_awaited(cell: Cell) -> None:
    assert hints('f()', cell) == ['That is a coroutine: put `await` before the call.']


@pytest.mark.parametrize('cell', [Cell(stdout='42\n'), Cell(text='42')])
def test_a_result_that_may_be_the_answer(cell: Cell) -> None:
    assert hints('print(42)', cell) == [
        'If this answers the task, call final_answer(...) with the value. If not, go on.'
    ]
    assert hints('print(42)', cell, can_stop=False) == []


def test_an_undefined_name_gets_the_nearest_ones() -> None:
    assert hints('serch()', failed('NameError', "name 'serch' is not defined")) == [
        "There is no 'serch'. Did you mean search or search_files?"
    ]


def test_an_undefined_name_that_is_like_no_other_gets_no_guess() -> None:
    assert hints('zzz', failed('NameError', "name 'zzz' is not defined")) == []


@pytest.mark.parametrize('type_', ['ModuleNotFoundError', 'ImportError'])
def test_a_missing_package(type_: str) -> None:
    assert hints('import numpy', failed(type_, "No module named 'numpy'")) == [
        'numpy is not installed here: use the standard library.'
    ]


def test_code_that_is_not_python() -> None:
    assert hints('for', failed('SyntaxError', 'invalid syntax', 'syntax')) == [
        'The code did not run. Write the whole corrected code again.'
    ]


def test_code_that_took_too_long() -> None:
    assert 'functools.cache' in hints('while True: pass', failed('TimeoutError', 'the cell took longer', 'time'))[0]


def call(seconds: float, error: str | None = None, **arguments: object) -> ToolCall:
    return ToolCall(id=1, name='search', arguments=arguments, ok=error is None, error=error, seconds=seconds)


@pytest.mark.parametrize(
    ('calls', 'blamed'),
    [
        ([], False),
        ([call(0.1)], False),
        ([call(9.0)], True),
        ([call(2.0)] * 4, True),
        ([call(0.1, 'CancelledError')], True),
    ],
)
def test_a_tool_that_took_too_long_is_named(calls: list[ToolCall], blamed: bool) -> None:
    cell = replace(failed('TimeoutError', 'the cell took longer than its 10 s', 'time'), seconds=10.0)
    [hint] = hints_for('search()', cell, names=NAMES, can_stop=True, calls=calls)
    assert ('because of the tool search' in hint) is blamed
    assert ('@functools.cache' in hint) is not blamed


@pytest.mark.parametrize(
    ('error', 'message', 'arguments', 'meant'),
    [
        ('KeyError', "'tee'", {'item': 'tee'}, True),
        ('KeyError', "'tee'", {'items': ['tea', 'tee']}, True),
        ('KeyError', '7', {'row': 7}, True),
        ('ValueError', 'no such item: tee', {'item': 'tee'}, True),
        ('ValueError', 'service is down', {}, False),
        ('ValueError', 'service is down', {'item': 'tea', 'more': ''}, False),
        ('ValueError', 'error 512', {'row': 5}, False),
        ('KeyError', "'token'", {'number': 10**5000}, False),
    ],
)
def test_a_call_is_to_be_changed_only_if_the_error_is_about_it(
    error: str, message: str, arguments: dict[str, object], meant: bool
) -> None:
    calls = [call(0.0, f'{error}: {message}', **arguments)]
    found = hints_for('search()', failed(error, message), names=NAMES, can_stop=True, calls=calls)
    assert bool(found) is meant
    assert all('The tool search cannot be called with' in hint for hint in found)


def test_other_errors_speak_for_themselves() -> None:
    assert hints('1/0', failed('ZeroDivisionError', 'division by zero')) == []


def test_a_text_that_was_opened_as_if_it_were_a_file() -> None:
    cell = failed('FileNotFoundError', "[Errno 44] No such file or directory: 'a,b\\n1,2'")
    assert hints('rows = list(csv.reader(open(table)))', cell) == [
        'table is the text itself, not the name of a file: read it with io.StringIO(table).'
    ]
    missing = failed('FileNotFoundError', "No such file or directory: 'x'")
    assert hints('open("x")', missing) == [
        'There is no such file. If the data stands in the task, put it into the code as a string.'
    ]
    assert hints_for('open("x")', missing, names=(), texts=['sales'], can_stop=True) == [
        'There is no such file. The text is in a variable (sales): read it with io.StringIO(sales).'
    ]


def test_nested_data_that_was_taken_for_a_dict() -> None:
    cell = failed('AttributeError', "'list' object has no attribute 'items'")
    walk = 'def total(data):\n    return sum(total(value) for _, value in data.items())\ntotal(x)'
    assert hints(walk, cell) == [
        'Here it is a list. Write total for any value: what it does with a dict, a list, and others.'
    ]
    assert hints('x.items()', cell) == ['Here it is a list, not a dict: look at the data first.']
    assert hints('x.foo()', failed('AttributeError', "'list' object has no attribute 'foo'")) == []


def test_a_loop_over_a_dict_that_meets_a_list_is_mended() -> None:
    body = 'n = 0\n    for key, value in x.items():\n        n += total(value)\n    return n'
    code = f'def total(x):\n    {body}\ntotal([1])'
    message = "'list' object has no attribute 'items'"
    cell = Cell(error=CellError(kind='exception', type='AttributeError', message=message, line=3))
    [hint] = hints(code, cell)
    line = 'for key, value in (x.items() if isinstance(x, dict) else enumerate(x)):'
    assert hint.startswith('Here it is a list. Write the whole code again')
    assert hint.endswith(f'\n{line}')
    mended = code.replace('for key, value in x.items():', line).replace('total(value)', '1').partition('\ntotal(')[0]
    found: dict[str, object] = {}
    exec(f'{mended}\nlist_of_two, dict_of_one = total([1, 2]), total({{"a": 1}})', found)
    assert (found['list_of_two'], found['dict_of_one']) == (2, 1)
    nested = code.replace('key, value in', '(one, two), value in')
    assert hints(nested, cell)[0].endswith(
        '\nfor (one, two), value in (x.items() if isinstance(x, dict) else enumerate(x)):'
    )
    elsewhere = Cell(error=CellError(kind='exception', type='AttributeError', message=message, line=6))
    assert 'Write total for any value' in hints(code, elsewhere)[0]


@pytest.mark.parametrize(
    ('code', 'seen', 'number'),
    [
        ('total = sum(rows)\nfinal_answer(42)', 'Add up the rows.', '42'),
        ('total = price * 3\nprint(total)\nfinal_answer(7.5)', '', '7.5'),
        ('total = sum(rows)\nfinal_answer(42)', 'Output:\n42', None),
        ('total = sum(rows)\nfinal_answer(42)', 'Output:\n142 and 42.5', '42'),
        ('total = sum(rows)\nfinal_answer(total)', '', None),
        ('total = sum(rows)\nfinal_answer(True)', '', None),
        ('final_answer(42)', '', None),
        ('total = sum(', '', None),
        ("found = re.findall('\\d', text)\nfinal_answer(3)", '', '3'),
    ],
)
def test_a_number_that_was_made_up_before_the_result_was_there(code: str, seen: str, number: str | None) -> None:
    assert guessed(code, seen) == number


def test_a_variable_that_was_lost_at_a_resume_is_named() -> None:
    error = CellError(kind='exception', type='NameError', message="name 'lines' is not defined")
    cell = Cell(error=error)
    assert 'lost' in hints_for('print(lines)', cell, names=['line'], can_stop=True, lost={'lines'})[0]
    assert 'line' in hints_for('print(lines)', cell, names=['line'], can_stop=True)[0]
