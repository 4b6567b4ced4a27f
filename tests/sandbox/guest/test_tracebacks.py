"""Errors as the writer of the cell wants to see them: their own lines, in the order Python shows them."""

from pathlib import Path

import pytest

from habilis import Sandbox
from habilis.sandbox.contract import CellError


async def error_of(sandbox: Sandbox, code: str) -> CellError:
    error = (await sandbox.run(code)).error
    assert error is not None
    assert 'habilis' not in error.traceback
    return error


async def test_a_traceback_is_what_python_would_print_of_the_cell_without_marks_below_a_whole_line(
    sandbox: Sandbox,
) -> None:
    error = await error_of(sandbox, 'def half(x):\n    return x / 0\n\nhalf(2)')
    assert error.traceback == (
        'Traceback (most recent call last):\n'
        '  File "<cell 1>", line 4, in <module>\n    half(2)\n'
        '  File "<cell 1>", line 2, in half\n    return x / 0\n           ~~^~~\n'
        'ZeroDivisionError: division by zero\n'
    )
    assert error.line == 2
    assert str(error) == 'ZeroDivisionError: division by zero'


async def test_a_function_of_an_earlier_cell_is_shown_with_its_own_lines(sandbox: Sandbox) -> None:
    await sandbox.run('def f():\n    raise KeyError("old")  # in cell 1')
    error = await error_of(sandbox, '# new\nf()')
    assert 'File "<cell 1>", line 2, in f\n    raise KeyError("old")  # in cell 1' in error.traceback
    assert 'File "<cell 2>", line 2, in <module>\n    f()' in error.traceback


async def test_chained_exceptions_show_every_link_with_its_lines(sandbox: Sandbox) -> None:
    error = await error_of(
        sandbox,
        'def parse(t):\n    return int(t)\ntry:\n    try:\n        parse("x")\n    except ValueError as e:\n'
        '        raise LookupError("outer") from e\nexcept LookupError:\n    undefined',
    )
    first, second, third = error.traceback.split('\n\n')[::2]
    assert 'return int(t)' in first
    assert "ValueError: invalid literal for int() with base 10: 'x'" in first
    assert 'raise LookupError("outer") from e' in second
    assert 'direct cause' in error.traceback
    assert 'During handling' in error.traceback
    assert third.endswith("NameError: name 'undefined' is not defined\n")
    assert (error.type, error.line) == ('NameError', 9)


async def test_a_group_of_exceptions_shows_its_members(sandbox: Sandbox) -> None:
    error = await error_of(
        sandbox,
        'import asyncio\nasync def bad(n):\n    raise ValueError(n)\n'
        'async with asyncio.TaskGroup() as g:\n    g.create_task(bad(1))\n    g.create_task(bad(2))',
    )
    assert error.type == 'ExceptionGroup'
    assert error.traceback.count('raise ValueError(n)') == 2
    assert 'taskgroups.py' not in error.traceback


async def test_frames_of_the_library_are_left_out(sandbox: Sandbox) -> None:
    error = await error_of(sandbox, "import json\njson.loads('{')")
    assert error.type == 'JSONDecodeError'
    assert error.traceback.count('File "') == 1
    assert error.line == 2


async def test_a_module_of_the_workspace_shows_its_lines(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text("def f(x):\n    return {}[x]  # mine\n\nbroken = lambda: f('k')\n")
    async with await Sandbox.create(workspace=tmp_path) as sandbox:
        error = await error_of(sandbox, '\nimport mine\nmine.broken()')
        assert 'File "/workspace/mine.py", line 2, in f\n    return {}[x]  # mine' in error.traceback
        assert (error.type, error.message, error.line) == ('KeyError', "'k'", 3)
        (tmp_path / 'wrong.py').write_text('x = 1\ndef (\n')
        error = await error_of(sandbox, 'import wrong')
        assert error.type == 'SyntaxError'
        assert '/workspace/wrong.py' in error.traceback


@pytest.mark.parametrize(
    ('code', 'line', 'shown'),
    [
        ('x = 1\nif x\n    pass', 2, 'if x'),
        ('def f():\nreturn 1', 2, 'return 1'),
        ('s = "open', 1, 's = "open'),
        ('a = 1\nawait = 2', 2, 'await = 2'),
        ('x = 1\nif x: return 1', 2, 'return 1'),
    ],
)
async def test_a_syntax_error_shows_its_line(sandbox: Sandbox, code: str, line: int, shown: str) -> None:
    error = await error_of(sandbox, code)
    assert (error.kind, error.line) == ('syntax', line)
    assert shown in error.traceback
    assert '^' in error.traceback


async def test_notes_are_shown(sandbox: Sandbox) -> None:
    error = await error_of(sandbox, "e = ValueError('x')\ne.add_note('look here')\nraise e")
    assert error.traceback.endswith('ValueError: x\nlook here\n')


async def test_a_huge_error_is_cut_in_the_middle(sandbox: Sandbox) -> None:
    error = await error_of(sandbox, "raise ValueError('a' * 10**6 + 'end')")
    assert len(error.message) < 5_000
    assert len(error.traceback) < 25_000
    assert error.message.startswith('aaa')
    assert error.message.endswith('aend')
    assert 'characters truncated' in error.message


async def test_endless_recursion_gives_a_short_traceback(sandbox: Sandbox) -> None:
    error = await error_of(sandbox, 'def f(): return f()\nf()')
    assert error.type == 'RecursionError'
    assert error.traceback.count('\n') < 30


@pytest.mark.parametrize('method', ['__str__', '__repr__'])
async def test_an_error_that_cannot_be_shown_is_still_an_error(sandbox: Sandbox, method: str) -> None:
    error = await error_of(sandbox, f'class E(Exception):\n    def {method}(self): 1/0\nraise E(1)')
    assert (error.kind, error.type) == ('exception', 'E')


async def test_a_warning_shows_where_it_comes_from(sandbox: Sandbox) -> None:
    cell = await sandbox.run("import warnings\nwarnings.warn('careful')  # this one")
    assert cell.stderr == "<cell 1>:2: UserWarning: careful\n  warnings.warn('careful')  # this one\n"


async def test_getsource_finds_the_code_of_cells(sandbox: Sandbox) -> None:
    await sandbox.run('x = 1\ndef f(a):\n    # a comment\n    return a\n')
    assert (await sandbox.run('import inspect\ninspect.getsource(f)')).value == (
        'def f(a):\n    # a comment\n    return a\n'
    )
    await sandbox.run('f = lambda: 2  # newer')
    assert (await sandbox.run('inspect.getsource(f)')).value == 'f = lambda: 2  # newer\n'


async def test_a_failed_test_shows_its_assertion(sandbox: Sandbox) -> None:
    error = await error_of(sandbox, "assert 1 == 2, 'numbers differ'")
    assert (error.type, error.message) == ('AssertionError', 'numbers differ')
