"""`habilis tools run` and `test`."""

from dataclasses import replace

import pytest

from habilis.forge.library.library import Library
from tests.cli.process import on_terminal
from tests.cli.tools.conftest import Tools, data
from tests.forge.samples import double, tool

HEAD = (
    '(text: str, number: int = 0, flag: bool = False, items: list[int] = [], either: int | str | None = None, '
    'size: float = 0.0, pair: tuple[int, str] = (1, "a"), any: object = None) -> list[object]'
)


@pytest.fixture
def echo(tools: Tools, library: Library) -> Tools:
    names = 'text, number, flag, items, either, size, pair, any'
    library.add(tool('echo', f'return [repr(one) for one in ({names})]', head=HEAD))
    return tools


def test_the_result_is_on_stdout(tools: Tools, library: Library) -> None:
    assert tools('run', 'double', '21').stdout == '42\n'
    assert tools('run', 'fourfold', 'number=5', '--json').stdout == '20\n'
    assert sum(one.calls for one in library.usage.read()) == 2


def test_arguments_are_json_or_plain_text_by_their_types(echo: Tools) -> None:
    done = echo('run', 'echo', '5', '6', 'true', '[1, 2]', 'seven', '--json')
    assert data(done)[:5] == ["'5'", '6', 'True', '[1, 2]', "'seven'"]
    done = echo('run', 'echo', 'x', 'either=7', 'size=3', 'pair=[2, "b"]', 'any={"a": null}', 'flag=True', '--json')
    assert data(done) == ["'x'", '0', 'True', '[]', '7', '3.0', "(2, 'b')", "{'a': None}"]
    done = echo('run', 'echo', 'a=b', 'either=null', 'items=(1, 2)', '--json')
    assert (done.returncode, done.stdout) == (2, '')
    assert data(echo('run', 'echo', 'a=b', 'either=null', 'any=plain', '--json'))[4:8:3] == ['None', "'plain'"]


def test_a_negative_number_is_no_option(tools: Tools) -> None:
    assert tools('run', 'double', '-21').stdout == '-42\n'


def test_an_integer_of_any_size_is_printed_whole(tools: Tools) -> None:
    assert tools('run', 'double', '1' * 4000).stdout == f'{"2" * 4000}\n'


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['four'], "number: 'four' is not int"),
        (['1.5'], "number: '1.5' is not int"),
        ([], 'number: missing'),
        (['1', '2'], "'2' is one argument too many"),
        (['1', 'number=2'], 'number'),
        (['number=1', 'number=2'], 'number is given twice'),
        (['numbr=1'], 'did you mean number=…?'),
        (['9' * 10_000], 'number'),
        (['[' * 100_000], 'number'),
    ],
)
def test_wrong_arguments_are_a_usage_error_with_the_signature(tools: Tools, arguments: list[str], reason: str) -> None:
    done = tools('run', 'double', *arguments)
    assert (done.returncode, done.stdout) == (2, '')
    assert reason in done.stderr
    assert 'double(number: int) -> int' in done.stderr
    assert 'Traceback' not in done.stderr


def test_an_error_of_the_tool_is_one_line(tools: Tools, library: Library) -> None:
    library.add(tool('wrong', 'raise ValueError("no such unit")'))
    done = tools('run', 'wrong', '1')
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.startswith('habilis: wrong: ValueError: no such unit')


def test_a_tool_cannot_read_the_host(tools: Tools, library: Library) -> None:
    library.add(tool('reader', 'return open("/etc/passwd").read()', head='() -> str'))
    done = tools('run', 'reader')
    assert (done.returncode, done.stdout) == (1, '')


def test_all_tools_are_tested_by_default(tools: Tools) -> None:
    done = tools('test')
    assert done.returncode == 0
    assert sorted(line.split(',')[0] for line in done.stdout.splitlines()) == [
        '✓ double v1: 1 test',
        '✓ fourfold v1: 1 test',
    ]
    assert done.stderr == 'habilis: 2 of 2 tools pass their tests\n'


def test_a_failing_tool_makes_the_exit_code_1(tools: Tools, library: Library) -> None:
    library.add(replace(double('wrong'), code=double('wrong', factor=3).code))
    done = tools('test', 'double', 'wrong')
    assert done.returncode == 1
    assert '✗ wrong v1' in done.stdout
    assert 'test_three: line 5: assert wrong(3) == 6: got 9, expected 6' in done.stdout
    results = data(tools('test', 'wrong', '--json'))
    assert [(one['name'], one['ok'], one['tests'][0]['name']) for one in results] == [('wrong', False, 'test_three')]
    assert tools('test', 'double').returncode == 0


def test_properties_are_checked_on_request(tools: Tools, library: Library) -> None:
    head = '(numbers: list[int]) -> int'
    library.add(tool('smallest', 'numbers.sort(); return numbers[0]', head=head))
    library.add(tool('first', 'return numbers[0]', head=head))
    assert tools('test', 'smallest', 'first').returncode == 0
    done = tools('test', 'smallest', 'first', '--properties')
    assert done.returncode == 1
    assert ' changes its arguments, to ' in done.stdout
    assert '    note: first([]) raises IndexError\n' in done.stdout


def test_progress_is_shown_on_a_terminal(library: Library) -> None:
    with on_terminal('tools', 'test', '--library', str(library.folder)) as terminal:
        shown = terminal.wait_for('2 of 2 tools pass their tests')
    assert '1 of 2' in shown
