"""The model is not told what it has just seen or written."""

from pathlib import Path

from habilis.agent import Agent
from habilis.models import ScriptedModel
from tests.agent.scripts import block, sent


async def told(*cells: str, workspace: Path | None = None) -> str:
    """The last prompt of a run with these cells."""
    model = ScriptedModel([*map(block, cells), block('final_answer(1)')])
    async with Agent(model, workspace=workspace) as agent:
        await agent.run('go')
    return sent(model, len(cells))


async def test_files_of_caches_are_not_listed(tmp_path: Path) -> None:
    text = await told(
        'import os\n'
        "for folder in ('.pytest_cache/v', 'pkg/__pycache__', '.git', 'docs'):\n"
        '    os.makedirs(folder)\n'
        "    open(f'{folder}/file', 'w').close()",
        workspace=tmp_path,
    )
    assert 'Files: docs/file (new, 0 bytes)' in text
    assert 'pytest_cache/v/file (' not in text


async def test_values_that_were_just_shown_are_not_repeated() -> None:
    text = await told(
        'total = 12\nname = "Ada"\nother = 3\nprint(f"{total} for {name}, {len(name)}")\nrows = list(range(100))\nrows'
    )
    assert 'New variables: other = 3\n' in f'{text}\n'


async def test_a_variable_that_was_there_before_is_not_called_new() -> None:
    text = await told('total = 12\nother = 3', 'total += 1\nmore = 1')
    assert 'New variables: more = 1\nChanged variables: total = 13\n' in text


async def test_a_value_of_which_only_a_part_was_shown_is_named() -> None:
    text = await told('rows = list(range(100))\nprint(len(rows))')
    assert 'New variables: rows (list, 100 items)' in text


async def test_imports_functions_and_classes_are_not_listed() -> None:
    text = await told(
        'from abc import ABC\nfrom collections import Counter\nfrom enum import Enum\nfrom math import gcd\n'
        'class A(ABC): pass\nclass Colour(Enum): RED = 1\ndef f(): pass\nx = 1'
    )
    assert 'New variables: x = 1' in text


async def test_a_coroutine_of_an_earlier_cell_is_not_held_against_a_later_one() -> None:
    text = await told('async def f(): pass\nkept = f()', 'kept = 1')
    assert 'never awaited' not in text


async def test_markers_below_a_line_are_short_and_point_at_a_part_of_it() -> None:
    long = ' + '.join(str(number) for number in range(60))
    text = await told(f'values = [1]\nprint(int(values[0] + sum([{long}]), base=2))\nvalues[7]')
    assert 'TypeError' in text
    assert '~' * 41 not in text
    assert '^' * 41 not in text
    assert '~~~~~~^^^' in await told('values = [1]\nfirst = values[7]')


async def test_a_name_that_python_itself_suggests_is_not_suggested_again() -> None:
    text = await told('total = 3', 'print(totl)')
    assert "Did you mean: 'total'?" in text
    assert "There is no 'totl'" not in text
