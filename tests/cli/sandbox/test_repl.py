"""`habilis sandbox repl`: from a pipe, and on a terminal."""

import subprocess
import time
from pathlib import Path
from typing import Literal

import pytest

from habilis.cli.sandbox.repl import completeness
from tests.cases import each_case
from tests.cli.process import Terminal, habilis, on_terminal


def repl(*lines: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """What it makes of these lines from a pipe."""
    return habilis('sandbox', 'repl', *options, stdin=''.join(f'{line}\n' for line in lines))


# From a pipe ----------------------------------------------------------------------------------------------------------


def test_values_are_shown_and_variables_stay() -> None:
    done = repl('x = 41', 'x + 1', 'None', 'print("p")', '"text"')
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\np\n'text'\n", '')


@each_case(
    ('lines', 'shown'),
    [
        (['def f(n):', '    return n * 2', '', 'f(21)'], '42\n'),
        (['def f(n):', '    return n * 2', 'f(21)'], '42\n'),
        (['if False:', '    1', 'else:', '    print(2)', '3'], '2\n3\n'),
        (['for i in range(2): print(i)', '', '7'], '0\n1\n7\n'),
        (['x = [1,', '', '2]', 'x'], '[1, 2]\n'),
        (['s = """a', '', 'b"""', 's'], "'a\\n\\nb'\n"),
        (['1 + \\', '2'], '3\n'),
        (['@print', 'def g(): pass', '', '5'], None),
        (['async def f():', '    return 3', 'await f()'], '3\n'),
        (['import asyncio', 'await asyncio.sleep(0, 4)'], '4\n'),
        (['async with __import__("contextlib").AsyncExitStack():', '    print(1)', '2'], '1\n2\n'),
        (['if True:', '    print("the last block needs no empty line")'], 'the last block needs no empty line\n'),
        (['match 3:', '    case 3:', '        print("three")', 'type N = int', 'N'], 'three\nN\n'),
    ],
)
def test_several_lines_make_one_statement_as_in_python(lines: list[str], shown: str | None) -> None:
    done = repl(*lines)
    assert (done.returncode, done.stderr) == (0, '')
    assert shown is None or done.stdout == shown


def test_an_error_does_not_end_the_session() -> None:
    done = repl('1 / 0', 'x = )', '"still here"')
    assert done.returncode == 1
    assert done.stdout == "'still here'\n"
    assert 'ZeroDivisionError: division by zero\n' in done.stderr
    assert 'SyntaxError' in done.stderr


def test_a_limit_does_not_end_the_session() -> None:
    done = repl('x = 1', 'while True: pass', '', 'x', options=('--seconds', '0.5'))
    assert done.stdout == '1\n'
    assert 'habilis: the time limit of 0.5 s was reached' in done.stderr
    assert '(variables restored to before this cell)' in done.stderr


def test_exit_inside_a_cell_ends_the_cell_only() -> None:
    done = repl('import sys; sys.exit(3)', '"here"')
    assert done.stdout == "'here'\n"
    assert 'the cell called exit (SystemExit: 3); type :quit to leave' in done.stderr


@pytest.mark.parametrize('word', [':quit', 'exit', 'quit()'])
def test_a_word_to_leave_is_the_end(word: str) -> None:
    assert repl('1', word, '2').stdout == '1\n'


def test_input_takes_the_next_line() -> None:
    assert repl('name = input("who? ")', 'Ann', 'name').stdout == "who? 'Ann'\n"


def test_the_options_are_those_of_run(tmp_path: Path) -> None:
    done = repl('import os', 'os.getcwd(), os.environ["A"]', options=('--workspace', str(tmp_path), '--env', 'A=1'))
    assert done.stdout == "('/workspace', '1')\n"
    assert repl('1', options=('--seconds', '0')).returncode == 2


def test_it_works_without_any_input() -> None:
    done = repl()
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


# Commands -------------------------------------------------------------------------------------------------------------


def test_help_lists_the_commands() -> None:
    shown = repl(':help').stdout
    assert all(command in shown for command in (':vars', ':snapshot FILE', ':restore FILE', ':quit'))


def test_vars_lists_the_variables_whatever_they_are() -> None:
    done = repl('x = {"a": 1}', 'def f(): pass', '_hidden = 1', 'type = list = 5', ':vars')
    lines = done.stdout.splitlines()
    assert [line.partition(':')[0] for line in lines] == ['f', 'list', 'type', 'x']
    assert lines[-1] == "x: dict = {'a': 1}"


def test_variables_go_to_a_file_and_come_back(tmp_path: Path) -> None:
    file = tmp_path / 'variables'
    first = repl('x = 5', 'def f(): return x', f':snapshot {file}', 'x = 6', f':restore {file}', 'f()')
    assert first.stdout.splitlines()[1:] == ['5']
    assert first.stdout.startswith(f'{file}: ')
    assert repl(f':restore {file}', 'f() + 1').stdout == '6\n'


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    done = repl('g = (i for i in [1])', 'x = 1', f':snapshot {tmp_path / "s"}')
    assert done.stdout.endswith('; not saved: g\n')


@pytest.mark.parametrize(
    ('command', 'complaint'),
    [
        (':nonsense', "unknown command ':nonsense'; type :help for a list"),
        (':snapshot', ':snapshot needs a file name'),
        (':restore /no/such/file', '/no/such/file: No such file or directory'),
        (':snapshot /no/such/folder/file', '/no/such/folder/file: No such file or directory'),
        (f':restore {__file__}', 'this is not a Habilis snapshot'),
    ],
)
def test_a_wrong_command_is_one_line_and_no_harm(command: str, complaint: str) -> None:
    done = repl('x = 1', command, 'x')
    assert (done.stdout, done.stderr) == ('1\n', f'habilis: {complaint}\n')


# On a terminal --------------------------------------------------------------------------------------------------------

PROMPT = '>>> '


def answer(terminal: Terminal, line: str) -> str:
    """What is shown between a line and the next prompt."""
    terminal.type(f'{line}\n')
    terminal.wait_for(f'{line}\n')
    return terminal.wait_for(PROMPT).removesuffix(PROMPT)


def interrupt_prompt(terminal: Terminal) -> None:
    """Ctrl-C at a prompt. Python misses one that comes in the instant between showing it and waiting for keys."""
    time.sleep(0.5)
    terminal.type('\x03')
    terminal.wait_for(f'KeyboardInterrupt\n{PROMPT}', seconds=20)


def test_a_session_on_a_terminal() -> None:
    with on_terminal('sandbox', 'repl') as terminal:
        assert ':help for help' in terminal.wait_for(PROMPT)
        assert answer(terminal, '6 * 7').endswith('42\n')
        terminal.type('def f():\n')
        terminal.wait_for('... ')
        terminal.type('    return 8\n')
        terminal.wait_for('... ')
        terminal.type('\n')
        terminal.wait_for(PROMPT)
        assert answer(terminal, 'f()').endswith('8\n')
        assert '\x1b[31mNameError' in answer(terminal, 'missing')
        terminal.type('\x04')
        assert terminal.exit_code() == 0


def test_ctrl_c_ends_a_running_cell_only() -> None:
    with on_terminal('sandbox', 'repl') as terminal:
        terminal.wait_for(PROMPT)
        answer(terminal, 'x = 5')
        terminal.type('print("re" + "ady"); n = [0 for _ in iter(int, 1)]\n')
        terminal.wait_for('ready\n')
        terminal.type('\x03')
        shown = terminal.wait_for(PROMPT, seconds=5)
        assert 'habilis: the cell was cancelled' in shown
        assert '(variables restored to before this cell)' in shown
        assert answer(terminal, 'x + 1').endswith('6\n')


def test_ctrl_c_ends_a_cell_that_sleeps_or_asks() -> None:
    with on_terminal('sandbox', 'repl') as terminal:
        terminal.wait_for(PROMPT)
        for code, sign in (
            ('import time; print("re" + "ady"); time.sleep(60)', 'ready\n'),
            ('input("na" + "me? ")', 'name? '),
        ):
            terminal.type(f'{code}\n')
            terminal.wait_for(sign)
            terminal.type('\x03')
            assert 'the cell was cancelled' in terminal.wait_for(PROMPT, seconds=5)
        assert answer(terminal, '"alive"').endswith("'alive'\n")


def test_ctrl_c_at_the_prompt_clears_what_was_begun() -> None:
    with on_terminal('sandbox', 'repl') as terminal:
        terminal.wait_for(PROMPT)
        terminal.type('def f():\n')
        terminal.wait_for('... ')
        interrupt_prompt(terminal)
        terminal.type('1 +')
        interrupt_prompt(terminal)
        assert answer(terminal, '2 + 3').endswith('5\n')


def test_a_cell_can_ask_at_the_terminal() -> None:
    with on_terminal('sandbox', 'repl') as terminal:
        terminal.wait_for(PROMPT)
        terminal.type('input("na" + "me? ").upper()\n')
        terminal.wait_for('name? ')
        terminal.type('ann\n')
        assert terminal.wait_for(PROMPT).endswith(f"'ANN'\n{PROMPT}")


# Whether more lines are needed ----------------------------------------------------------------------------------------


@each_case(
    ('source', 'verdict'),
    [
        ('', 'complete'),
        ('1', 'complete'),
        ('await x', 'complete'),
        ('def f():', 'incomplete'),
        ('def f():\n    pass', 'incomplete'),
        ('def f():\n    pass\n', 'complete'),
        ('(', 'incomplete'),
        ('"""', 'incomplete'),
        ('x \\', 'incomplete'),
        ('async for i in x:', 'incomplete'),
        (')', 'invalid'),
        ('x = = 1', 'invalid'),
        ('\0', 'invalid'),
        ('(' * 1000, 'invalid'),
    ],
)
def test_incomplete_statements_are_detected(source: str, verdict: Literal['complete', 'incomplete', 'invalid']) -> None:
    assert completeness(source) == verdict
