"""What the model sees of a cell (rows A16 and D11)."""

from dataclasses import replace

import pytest

from habilis.agent.context.observation import Observation, describe_variable, observe
from habilis.agent.context.prompt import MAX_LISTED
from habilis.agent.context.truncation import Bounds
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell, CellError, Display, FileChange, Variable

BOUNDS = Bounds(tokens=100, lines=10)
TRACEBACK = """Traceback (most recent call last):
  File "<cell>", line 3, in <module>
    print(1 / rows)
          ~~^~~~~~
ZeroDivisionError: division by zero"""
ERROR = CellError(kind='exception', type='ZeroDivisionError', message='division by zero', traceback=TRACEBACK, line=3)


def seen(cell: Cell, bounds: Bounds = BOUNDS) -> str:
    return observe(cell, number=1, bounds=bounds).text


def test_output_and_value_are_shown_under_their_names() -> None:
    assert seen(Cell(stdout='hello\nworld\n', text='42')) == 'Output:\nhello\nworld\nValue:\n42'


def test_standard_error_is_shown_too() -> None:
    assert seen(Cell(stdout='a\n', stderr='careful\n')) == 'Output:\na\nStandard error:\ncareful'


def test_code_that_prints_and_then_fails_shows_the_print_and_the_whole_traceback() -> None:
    assert seen(Cell(stdout='first\n', error=ERROR)) == f'Output:\nfirst\nError:\n{TRACEBACK}'


def test_an_error_without_a_traceback_is_named() -> None:
    error = CellError(kind='time', type='TimeLimit', message='the cell ran longer than 5 seconds')
    assert seen(Cell(error=error)) == 'Error:\nTimeLimit: the cell ran longer than 5 seconds'


def test_a_long_traceback_keeps_the_line_that_names_the_error() -> None:
    long = replace(ERROR, traceback='\n'.join(['Traceback:', *['  again()'] * 500, 'RecursionError: too deep']))
    lines = seen(Cell(error=long)).split('\n')
    assert lines[1] == 'Traceback:'
    assert lines[-1] == 'RecursionError: too deep'
    assert len(lines) <= BOUNDS.lines + 2


def test_silence_is_said() -> None:
    assert seen(Cell()) == 'The code ran without an error and printed nothing.'
    assert seen(Cell(stdout='\n \n')) == 'The code ran without an error and printed nothing.'


def test_images_are_said_to_be_displayed() -> None:
    images = tuple(Display(mime=mime, data='') for mime in ('image/png', 'text/html', 'image/svg+xml'))
    assert seen(Cell(displays=images[:1])) == 'Displayed to the user: 1 image'
    assert seen(Cell(text='1', displays=images)) == 'Value:\n1\nDisplayed to the user: 2 images'


def test_the_value_none_is_a_value() -> None:
    assert seen(Cell(text='None')) == 'Value:\nNone'


def test_new_variables_come_with_type_and_size() -> None:
    new = [
        Variable(name='rows', type='list', size='3 items'),
        Variable(name='_', type='int', size='', text='9'),
        Variable(name='x', type='int', size='', text='3'),
    ]
    found = observe(Cell(), number=1, bounds=BOUNDS, new=new)
    assert found.text == 'New variables: rows (list, 3 items), x = 3'
    assert describe_variable(new[0]) == 'rows (list, 3 items)'


def test_of_many_variables_the_number_is_said() -> None:
    new = [Variable(name=f'v{number}', type='int', size='') for number in range(MAX_LISTED + 5)]
    text = observe(Cell(), number=1, bounds=Bounds(), new=new).text
    assert text.endswith(f'v{MAX_LISTED - 1} (int) and 5 more')


def test_files_come_with_what_happened_to_them() -> None:
    files = (
        FileChange(path='out/a.csv', size=12_345, change='new'),
        FileChange(path='b.txt', size=1, change='changed'),
    )
    assert seen(Cell(files=files)) == 'Files: out/a.csv (new, 12,345 bytes), b.txt (changed, 1 bytes)'


def test_lost_variables_are_named_and_counted() -> None:
    assert 'These variables were lost: a, b' in seen(Cell(lost=('a', 'b')))
    assert seen(Cell(lost=tuple('abcdefghijklmnop')), Bounds()).endswith('l and 4 more')


def test_what_tools_logged_is_shown() -> None:
    call = ToolCall(id=1, tool='search', arguments={}, ok=True, log=('3 hits', 'cached'))
    found = observe(Cell(stdout='x'), number=1, bounds=BOUNDS, calls=[call])
    assert found.text == 'Output:\nx\nTool log:\nsearch: 3 hits\nsearch: cached'


def test_an_error_that_the_code_was_not_given_is_shown_and_one_that_it_was_is_not() -> None:
    hidden = ToolCall(id=1, tool='load', arguments={}, ok=False, error='OSError: no disk', hidden=True)
    raised = ToolCall(id=2, tool='save', arguments={}, ok=False, error='OSError: no room')
    text = observe(Cell(), number=1, bounds=BOUNDS, calls=[hidden, raised]).text
    assert text == 'Tool log:\nload failed and returned None: OSError: no disk'


def test_the_note_comes_last() -> None:
    found = observe(Cell(stdout='x'), number=1, bounds=BOUNDS, note='Go on.')
    assert found.text == 'Output:\nx\nGo on.'


def test_truncated_text_is_kept_whole_under_the_name_in_the_observation() -> None:
    cell = Cell(stdout='out\n' * 500, stderr='err\n' * 500, text=repr('x' * 5000))
    found = observe(cell, number=7, bounds=BOUNDS)
    assert found.kept == {'output_7': cell.stdout, 'errors_7': cell.stderr, 'value_7': cell.text}
    for name in found.kept:
        assert f'the whole is in the variable {name} …]' in found.text


def test_text_that_fits_is_not_kept() -> None:
    assert observe(Cell(stdout='short', text='1'), number=7, bounds=BOUNDS).kept == {}


def test_bounds_may_change_from_one_cell_to_the_next() -> None:
    cell = Cell(stdout='line\n' * 500)
    assert 'characters truncated' in seen(cell)
    assert 'characters truncated' not in seen(cell, replace(BOUNDS, enabled=False))
    assert seen(cell, replace(BOUNDS, enabled=False)).count('line') == 500


@pytest.mark.parametrize(
    'found',
    [
        observe(Cell(lost=('v' * 50_000,)), number=1, bounds=BOUNDS),
        observe(Cell(files=(FileChange(path='f' * 50_000, size=1, change='new'),)), number=1, bounds=BOUNDS),
        observe(Cell(), number=1, bounds=BOUNDS, new=[Variable(name='v' * 50_000, type='int', size='')]),
        observe(
            Cell(),
            number=1,
            bounds=BOUNDS,
            calls=[ToolCall(id=1, tool='t', arguments={}, ok=True, log=('x',) * 9_000)],
        ),
        observe(Cell(error=replace(ERROR, traceback='', message='m' * 50_000)), number=1, bounds=BOUNDS),
    ],
    ids=['lost', 'files', 'variables', 'log', 'error'],
)
def test_nothing_that_the_code_can_make_long_makes_the_observation_long(found: Observation) -> None:
    assert len(found.text) < 2_000
