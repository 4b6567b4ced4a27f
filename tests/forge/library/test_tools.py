"""Tools of the library as tools of an agent."""

from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.errors import ToolArgumentsError, ToolCallError
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.forge.library.tools import library_tool
from tests.forge.samples import double, fourfold, tool


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / 'library')


async def call(library: Library, candidate: Candidate, *args: object, **kwargs: object) -> object:
    library.add(candidate)
    return await library_tool(library, candidate.name).invoke(args, kwargs)


async def test_a_call_is_made_and_counted(library: Library) -> None:
    assert await call(library, double(), 4) == 8
    [used] = library.usage.read()
    assert (used.name, used.version, used.calls, used.failed) == ('double', 1, 1, 0)


async def test_a_tool_that_was_edited_by_hand_warns_when_it_is_called(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    await call(library, double(), 4)
    assert caplog.text == ''
    path = library.folder / 'double' / 'v1' / 'tool.py'
    path.write_text(path.read_text().replace('* 2', '* 5'))
    assert await library_tool(library, 'double').invoke((4,), {}) == 20
    assert 'double was edited by hand after it was tested' in caplog.text


async def test_a_failed_call_is_counted_as_failed(library: Library) -> None:
    with pytest.raises(ToolCallError, match='wrong: ZeroDivisionError'):
        await call(library, tool('wrong', 'return 1 // 0'), 4)
    [used] = library.usage.read()
    assert (used.calls, used.failed) == (1, 1)


async def test_arguments_are_validated_before_anything_runs(library: Library) -> None:
    with pytest.raises(ToolArgumentsError, match='number'):
        await call(library, double(), 'four')
    assert library.usage.read() == []


async def test_a_tool_may_use_others(library: Library) -> None:
    library.add(double())
    assert await call(library, fourfold(), 3) == 12


async def test_no_file_of_the_host_is_readable(library: Library, tmp_path: Path) -> None:
    secret = tmp_path / 'secret.txt'
    secret.write_text('hunter2')
    library.add(tool('reader', 'return open(path).read()', head='(path: str) -> str'))
    reader = library_tool(library, 'reader')
    for path in (str(secret), '/etc/passwd'):
        with pytest.raises(ToolCallError, match='reader: '):
            await reader.invoke((path,))


async def test_no_variable_of_the_host_is_visible(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'hunter2')
    body = 'import os; return dict(os.environ)'
    found = await call(library, tool('variables', body, head='() -> dict[str, str]'))
    assert 'hunter2' not in str(found)


async def test_calls_share_nothing(library: Library) -> None:
    library.add(tool('count', 'import builtins; builtins.n = getattr(builtins, "n", 0) + 1; return builtins.n'))
    counting = library_tool(library, 'count')
    assert [await counting.invoke((1,)), await counting.invoke((1,))] == [1, 1]


@pytest.mark.parametrize(
    'head',
    [
        '(number: int = open({path!r}, "w").write("x")) -> int',
        '(number: open({path!r}, "w") = 1) -> int',
        '(number: "open({path!r}, \'w\')" = 1) -> int',
        '(number: int = 1) -> [open({path!r}, "w") for _ in "x"]',
        '(number: int = 1, *, more: int = __import__("os").mkdir({path!r})) -> int',
    ],
)
def test_hints_and_defaults_are_never_evaluated_on_the_host(library: Library, tmp_path: Path, head: str) -> None:
    trap = tmp_path / 'trap'
    library.add(tool('sly', 'return number', head=head.format(path=str(trap))))
    made = library_tool(library, 'sly')
    made.check()
    assert 'number' in made.signature
    assert not trap.exists()


@pytest.mark.parametrize(
    'hint', ['list["x"]', 'dict[int]', 'Literal[[]]', 'tuple[...]', 'int | "x"', 'list[()]', 'set[list[int]]']
)
def test_odd_hints_do_not_break_a_tool(library: Library, hint: str) -> None:
    library.add(tool('odd', 'return 1', head=f'(number: {hint}) -> {hint}'))
    library_tool(library, 'odd').check()


async def test_a_tool_that_never_ends_is_stopped(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    from habilis.forge.checks import calls

    monkeypatch.setattr(calls, 'LIMITS', replace(calls.LIMITS, seconds=1))
    with pytest.raises(ToolCallError, match='endless'):
        await call(library, tool('endless', 'while True: pass'), 1)


async def test_a_result_that_is_no_data_is_an_error(library: Library) -> None:
    with pytest.raises(ToolCallError, match='not plain data'):
        await call(library, tool('odd', 'return object()', head='() -> object'))
