"""The extractor and the runner of documentation examples can be trusted: they find the blocks, and they can fail."""

import runpy
from pathlib import Path

import pytest

from tests.house.pages import Command, Example, File, PageError, needs_model, run, steps
from tests.house.repository import ROOT


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / 'page.md'


def test_a_python_block_is_found_with_its_line(page: Path) -> None:
    page.write_text('# Title\n\n```python\nx = 1\n\ny = 2\n```\n')
    assert steps(page) == [Example(code='x = 1\n\ny = 2', line=3, output=None)]


def test_a_page_without_blocks_has_nothing_to_run(page: Path) -> None:
    page.write_text('# Title\n')
    assert steps(page) == []


def test_other_languages_are_not_run(page: Path) -> None:
    page.write_text('```toml\na = 1\n```\n\n```\nplain\n```\n')
    assert steps(page) == []


def test_a_block_with_a_title_is_a_python_block(page: Path) -> None:
    page.write_text('```python title="tour.py"\n1\n```\n')
    assert steps(page) == [Example(code='1', line=1, output=None)]


def test_the_text_block_directly_after_is_the_output(page: Path) -> None:
    page.write_text('```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\n2\n```\n```output\n```\n')
    assert steps(page) == [
        Example(code='print(1)', line=1, output='1'),
        Example(code='2', line=9, output=''),
    ]


def test_a_text_block_after_some_prose_is_only_text(page: Path) -> None:
    page.write_text('```python\nprint(1)\n```\n\nThe layout:\n\n```text\nsrc/\n```\n')
    assert steps(page) == [Example(code='print(1)', line=1, output=None)]


def test_a_block_in_a_list_loses_its_indentation(page: Path) -> None:
    page.write_text('1. First\n\n    ```python\n    if True:\n        x = 1\n\n    y = 2\n    ```\n')
    assert steps(page) == [Example(code='if True:\n    x = 1\n\ny = 2', line=3, output=None)]


def test_a_longer_fence_holds_a_shorter_one(page: Path) -> None:
    page.write_text('````markdown\n```python\nnot code of this page\n```\n````\n\n~~~python\n1\n~~~\n')
    assert steps(page) == [Example(code='1', line=7, output=None)]


def test_a_block_with_a_reason_is_left_out(page: Path) -> None:
    page.write_text('<!-- not run: needs a key -->\n\n```python\nask()\n```\n\n```text\nan answer\n```\n')
    assert steps(page) == []


def test_a_reason_counts_for_one_block_only(page: Path) -> None:
    page.write_text('<!-- not run: needs a key -->\n```python\nask()\n```\n```python\n1\n```\n')
    assert steps(page) == [Example(code='1', line=5, output=None)]


@pytest.mark.parametrize('comment', ['<!-- not run -->', '<!-- not run: -->', '<!--not run:   -->'])
def test_a_block_is_not_left_out_without_a_reason(page: Path, comment: str) -> None:
    page.write_text(f'{comment}\n```python\n1\n```\n')
    with pytest.raises(PageError, match=r'^page\.md:2: say why'):
        steps(page)


def test_a_block_that_is_never_closed_is_refused(page: Path) -> None:
    page.write_text('Text\n```python\n1\n')
    with pytest.raises(PageError, match=r'^page\.md:2: this block is never closed'):
        steps(page)


@pytest.mark.parametrize('language', ['py', 'python3', 'Python', 'pycon'])
def test_python_under_another_name_is_refused(page: Path, language: str) -> None:
    page.write_text(f'```{language}\n1\n```\n')
    with pytest.raises(PageError, match='write `python`'):
        steps(page)


def test_only_the_habilis_lines_of_a_console_block_are_commands(page: Path) -> None:
    page.write_text(
        '```console\n$ make demo\n$ habilis --version\nhabilis 0.1.0\n$ habilisx\n$ habilis a \\\n    b\n```\n'
    )
    assert steps(page) == [
        Command(command='habilis --version', line=3, exit_code=0),
        Command(command='habilis a     b', line=6, exit_code=0),
    ]


def test_a_command_may_exit_with_another_code(page: Path) -> None:
    page.write_text('<!-- exit: 2 -->\n```console\n$ habilis nonsense\n```\n')
    assert steps(page) == [Command(command='habilis nonsense', line=3, exit_code=2)]


def test_an_exit_code_belongs_to_one_command(page: Path) -> None:
    page.write_text('<!-- exit: 2 -->\n```console\n$ habilis a\n$ habilis b\n```\n')
    with pytest.raises(PageError, match='holds one'):
        steps(page)


def test_a_command_with_a_reason_is_left_out(page: Path) -> None:
    page.write_text('<!-- not run: takes a minute -->\n```console\n$ habilis doctor\n```\n')
    assert steps(page) == []


def test_programs_are_run_too(page: Path) -> None:
    page.write_text('```console\n$ python shop.py\n$ pythonic\n```\n')
    assert steps(page) == [Command(command='python shop.py', line=2, exit_code=0)]


def test_a_block_may_be_a_file(page: Path) -> None:
    page.write_text('<!-- file: shop.py -->\n```python\nx = 1\n```\n\n<!-- file: habilis.toml -->\n```toml\n```\n')
    assert steps(page) == [
        File(file='shop.py', text='x = 1\n', line=2),
        File(file='habilis.toml', text='\n', line=7),
    ]


def test_a_file_is_written_and_not_run(page: Path) -> None:
    code = 'from pathlib import Path\nimport shop\nprint(Path("shop.py").is_file(), shop.x)'
    page.write_text(f'<!-- file: shop.py -->\n```python\nx = 1\n```\n```python\n{code}\n```\n```text\nTrue 1\n```\n')
    assert run(page, page.parent) is None


@pytest.mark.parametrize('name', ['../shop.py', '/shop.py', 'a/b.py', '.env', ''])
def test_a_file_is_in_the_folder_of_the_page(page: Path, name: str) -> None:
    page.write_text(f'<!-- file: {name} -->\n```python\nx = 1\n```\n')
    with pytest.raises(PageError, match=r'^page\.md:2: a file is named by'):
        steps(page)


def check(page: Path, *codes: str) -> str | None:
    """Run a page made of these Python blocks, each with its output after `>>`."""
    text = ''
    for code in codes:
        source, marked, output = code.partition('>>')
        text += f'```python\n{source}\n```\n' + (f'```text\n{output}\n```\n' if marked else '')
    page.write_text(text)
    return run(page, page.parent)


def test_blocks_share_a_namespace_and_an_event_loop(page: Path) -> None:
    loop = 'import asyncio\nloop = asyncio.get_running_loop()\ntask = asyncio.create_task(asyncio.sleep(0, "done"))'
    same = 'assert asyncio.get_running_loop() is loop\nprint(await task)>>done'
    assert check(page, f'{loop}\nawait asyncio.sleep(0)', same) is None


def test_a_block_without_await_runs_outside_of_the_loop(page: Path) -> None:
    assert check(page, 'import asyncio\nprint(asyncio.run(asyncio.sleep(0, 3)))>>3') is None


def test_a_page_runs_in_an_empty_folder(page: Path) -> None:
    assert check(page, 'import os\nprint(os.listdir())>>[]') is None


def test_a_page_is_the_main_module(page: Path) -> None:
    assert check(page, 'import sys\nx = 5\nassert sys.modules["__main__"].x == 5\nprint(__name__)>>__main__') is None


@pytest.mark.parametrize('code', ['print(1, 22, 3)>>1 ... 3', 'print("a\\nb\\nc")>>a\n...\nc', 'print("a  ")>>a'])
def test_an_output_may_leave_things_open(page: Path, code: str) -> None:
    assert check(page, code) is None


@pytest.mark.parametrize('code', ['print(1)>>2', 'print(1)\nprint(2)>>1', 'x = 1>>1', 'print(1)>>'])
def test_an_output_that_is_not_true_is_a_failure(page: Path, code: str) -> None:
    problem = check(page, code)
    assert problem is not None
    assert 'page.md:1: the page says that this prints' in problem


@pytest.mark.parametrize(
    ('code', 'complaint'),
    [
        ('1 / 0', 'ZeroDivisionError'),
        ('await missing()', 'NameError'),
        ('raise SystemExit(0)', 'SystemExit'),
        ('x =', 'SyntaxError'),
        ('import warnings\nwarnings.warn("old")', 'UserWarning: old'),
    ],
)
def test_an_example_that_fails_is_a_failure(page: Path, code: str, complaint: str) -> None:
    problem = check(page, code)
    assert problem is not None
    assert complaint in problem


def test_a_failure_names_the_line_of_the_page(page: Path) -> None:
    problem = check(page, 'x = 1', 'y = 2\n1 / 0')
    assert problem is not None
    assert 'page.md", line 6' in problem


def test_a_command_that_fails_is_a_failure(page: Path) -> None:
    page.write_text('```console\n$ habilis no-such-command\n```\n')
    problem = run(page, page.parent)
    assert problem is not None
    assert '`habilis no-such-command` ended with code' in problem


def test_a_block_that_needs_a_model_is_marked(page: Path) -> None:
    page.write_text('```python model\n1\n```\n```console model\n$ habilis run "1"\n```\n```python\n2\n```\n')
    assert steps(page) == [
        Example(code='1', line=1, output=None, needs_model=True),
        Command(command='habilis run "1"', line=5, exit_code=0, needs_model=True),
        Example(code='2', line=7, output=None),
    ]
    assert needs_model(page)


def test_a_page_whose_blocks_have_other_marks_needs_no_model(page: Path) -> None:
    page.write_text('```python title="model.py"\n1\n```\n```python models\n1\n```\n')
    assert not needs_model(page)


def test_without_a_model_a_block_that_needs_one_is_not_run(page: Path) -> None:
    page.write_text(
        '```python model\nawait missing()\n```\n```text\n1\n```\n```console model\n$ habilis nonsense\n```\n'
    )
    assert run(page, page.parent) is None


def test_without_a_model_a_block_that_needs_one_must_compile(page: Path) -> None:
    page.write_text('```python model\nx =\n```\n')
    problem = run(page, page.parent)
    assert problem is not None
    assert 'page.md:1: the example does not compile' in problem


def test_with_a_model_a_block_that_needs_one_finds_its_name_and_must_print_what_the_page_says(page: Path) -> None:
    code = "import os\nprint(os.environ['HABILIS_MODEL'])"
    page.write_text(f'```python model\n{code}\n```\n\n```text\nlocal:\n```\n')
    assert run(page, page.parent, model='local:') is None


def test_with_a_model_an_output_that_is_not_true_is_a_failure(page: Path) -> None:
    page.write_text('```python model\nprint(1)\n```\n\n```text\n2\n```\n')
    problem = run(page, page.parent, model='local:')
    assert problem is not None
    assert 'page.md:1: the page says that this prints' in problem


def test_the_site_shows_a_block_that_needs_a_model_as_any_other() -> None:
    shown = runpy.run_path(str(ROOT / 'docs' / 'fences.py'))['on_page_markdown']
    marked = '# model\n\n```python model\nuse("```python model")\n```\n\n```console model\n```\n'
    plain = '# model\n\n```python\nuse("```python model")\n```\n\n```console\n```\n'
    assert shown(marked, page=None) == plain
    assert shown(plain, page=None) == plain
