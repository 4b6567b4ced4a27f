"""Files of a folder by name and by content."""

import subprocess
import tracemalloc
from pathlib import Path

import pytest

from habilis.core.errors import WorkspaceError
from habilis.tools import Files, Toolbox
from habilis.tools.toolsets import file_search
from tests.requirements import require


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return Toolbox([Files(tmp_path)])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    texts = {
        'main.py': 'import os\nTODO = 1\n',
        'notes.txt': 'a todo\nnothing\r\nTodo: ünlaut\n',
        'src/app.ts': 'let todo = 1\n',
        'src/lib/deep/util.ts': 'export const TODO = "x"\nTODO\n',
        'src/lib/a..b.txt': 'TODO no line end',
        '.config/settings.toml': 'todo = true\n',
        'node_modules/dep/index.ts': 'TODO\n',
        '.git/HEAD': 'TODO\n',
        'it\'s "so".txt': 'TODO\n',
        'bom.txt': '\ufeffbegin\n',
        'two\nlines.txt': 'TODO\n',
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    (tmp_path / 'data.bin').write_bytes(b'TODO\0\x01TODO')
    (tmp_path / 'link.txt').symlink_to(tmp_path / 'main.py')
    return tmp_path


@pytest.mark.parametrize(
    ('pattern', 'paths'),
    [
        ('*.py', ['main.py']),
        ('**/*.py', ['main.py']),
        ('src/**/*.ts', ['src/app.ts', 'src/lib/deep/util.ts']),
        ('**/deep/*.ts', ['src/lib/deep/util.ts']),
        ('src/*', ['src/app.ts', 'src/lib/']),
        ('src/', ['src/']),
        ('src/*/', ['src/lib/']),
        ('src/**', ['src/app.ts', 'src/lib/', 'src/lib/a..b.txt', 'src/lib/deep/', 'src/lib/deep/util.ts']),
        ('*.{py,bin}', ['data.bin', 'main.py']),
        ('/workspace/m*', ['main.py']),
        ('./m*', ['main.py']),
        ('.config/*', ['.config/settings.toml']),
        ('node_modules/**/*.ts', ['node_modules/dep/index.ts']),
        ('?wo*', ['two\nlines.txt']),
        ('it\'s "so"*', ['it\'s "so".txt']),
        ('link*', ['link.txt']),
        ('*.zzz', []),
        ('**/' * 30 + 'x', []),
    ],
)
async def test_d7_find_files(box: Toolbox, tree: Path, pattern: str, paths: list[str]) -> None:
    assert await box.call('find_files', pattern) == paths


BRACE_BOMBS = [
    '{' + ',' * 20_000 + '}',
    ('{' + ',' * 20_000 + '}') * 3,
    ('{' + ',' * 60 + '}') * 8,
    '{a,b}' * 100,
    '{' * 300 + ',' * 70 + '}' * 300,
    '{{a,b},{c,d}}' * 8,
    'x' * 2_000_000,
]


@pytest.mark.parametrize('tool', ['find_files', 'grep'])
async def test_a_pattern_is_measured_before_anything_is_made_of_it(box: Toolbox, tree: Path, tool: str) -> None:
    tracemalloc.start()
    try:
        for pattern in BRACE_BOMBS:
            given = {'pattern': pattern} if tool == 'find_files' else {'pattern': 'TODO', 'glob': pattern}
            with pytest.raises(WorkspaceError, match=r'stand for more than 64 patterns|is longer than 1,000') as caught:
                await box.call(tool, **given)
            assert len(str(caught.value)) < 200
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


async def test_what_a_search_finds_does_not_fill_the_memory(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, 'MAX_SECONDS', 300)
    (tmp_path / 'lines').write_bytes(b'\n' * 1_000_000)
    tracemalloc.start()
    try:
        assert await box.call('grep', '^$', output='count') == 'lines:1000000'
        assert len(str(await box.call('grep', '^$')).split('\n')) == 1000
        assert tracemalloc.get_traced_memory()[1] < 15 << 20
    finally:
        tracemalloc.stop()


async def test_an_expression_that_needs_much_memory_is_stopped(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, 'MAX_SECONDS', 300)
    (tmp_path / 'line').write_bytes(b'ab' * 4_000_000)
    with pytest.raises(WorkspaceError, match='the search needs more than 256 MB: use a simpler expression'):
        await box.call('grep', '(?:(a)|(b))*c')


@pytest.mark.parametrize('pattern', ['../*', '/etc/*', 'a/../../*', '', '.', '{a,b}' * 10, 'missing/*'])
async def test_a_pattern_that_cannot_be_right_is_refused(box: Toolbox, tree: Path, pattern: str) -> None:
    with pytest.raises(WorkspaceError):
        await box.call('find_files', pattern)


async def test_a_long_list_of_paths_is_cut_and_says_so(tmp_path: Path) -> None:
    for number in range(1001):
        (tmp_path / f'{number}').touch()
    box = Toolbox([Files(tmp_path)])
    paths = await box.call('find_files', '*')
    assert isinstance(paths, list)
    assert len(paths) == 1000  # pyright: ignore[reportUnknownArgumentType]
    assert box.take_records()[0].log == ('the first 1,000 of 1,001 paths: use a narrower pattern',)


GREPS: list[tuple[dict[str, object], list[str]]] = [
    ({'pattern': 'TODO'}, []),
    ({'pattern': 'todo', 'ignore_case': True}, ['-i']),
    ({'pattern': r'^\s*import \w+$'}, []),
    ({'pattern': 'TODO', 'glob': '*.ts'}, ['-g', '*.ts']),
    ({'pattern': 'TODO', 'glob': 'src/**/*.ts'}, ['-g', 'src/**/*.ts']),
    ({'pattern': 'TODO', 'glob': '*.{py,ts}'}, ['-g', '*.{py,ts}']),
    ({'pattern': 'todo', 'ignore_case': True, 'output': 'files'}, ['-i', '-l']),
    ({'pattern': 'todo', 'ignore_case': True, 'output': 'count'}, ['-i', '-c']),
    ({'pattern': 'ü|x"'}, []),
    ({'pattern': 'nothing.$'}, []),
    ({'pattern': 'no such thing'}, []),
    ({'pattern': '^begin'}, []),
]


@pytest.mark.parametrize(('arguments', 'options'), GREPS)
async def test_d8_grep_equals_ripgrep(
    box: Toolbox, tree: Path, arguments: dict[str, object], options: list[str]
) -> None:
    require('rg')
    (tree / 'two\nlines.txt').unlink()  # ripgrep prints it in two lines
    same = ['--no-ignore', '--hidden', '-g', '!.git', '-g', '!node_modules', '--no-heading', '--with-filename']
    lines = [] if {'-l', '-c'} & {*options} else ['-n']
    command = ['rg', *same, *lines, *options, '-e', str(arguments['pattern'])]
    found = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    ours = str(await box.call('grep', **arguments))
    assert sorted(ours.split('\n')) == sorted(found.stdout.decode().removesuffix('\n').split('\n'))


async def test_d8_grep(box: Toolbox, tree: Path) -> None:
    """What the comparison with ripgrep covers, where that is not installed; and one file, a folder, odd names."""
    assert str(await box.call('grep', 'TODO', 'src')).split('\n') == [
        'src/lib/a..b.txt:1:TODO no line end',
        'src/lib/deep/util.ts:1:export const TODO = "x"',
        'src/lib/deep/util.ts:2:TODO',
    ]
    assert await box.call('grep', 'TODO', '/workspace/main.py') == 'main.py:2:TODO = 1'
    assert await box.call('grep', 'TODO', glob='two*') == r"'two\nlines.txt':1:TODO"
    assert await box.call('grep', 'TODO', output='count', glob='*.ts') == 'src/lib/deep/util.ts:2'
    assert await box.call('grep', 'nowhere') == ''
    (tree / 'long').write_text('y' * 600)
    assert await box.call('grep', 'yy', 'long') == f'long:1:{"y" * 500}… (600 characters)'
    for path in ('../x', '/etc', 'missing', 'link.txt'):
        with pytest.raises(WorkspaceError):
            await box.call('grep', 'TODO', path)
    with pytest.raises(WorkspaceError, match='is not a regular expression: missing'):
        await box.call('grep', '(')
    with pytest.raises(WorkspaceError, match='is not a regular expression: Possible nested set'):
        await box.call('grep', '[[:alpha:]]')
    assert await box.call('grep', 'TODO', glob='/workspace/src/*/deep/*') == await box.call(
        'grep', 'TODO', 'src/lib/deep'
    )


async def test_a_file_that_cannot_be_searched_is_named(
    box: Toolbox, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, 'MAX_BYTES', 30)
    (tree / 'large.log').write_text('TODO\n' * 10)
    assert 'large' not in str(await box.call('grep', 'TODO'))
    assert box.take_records()[0].log == ('too large, and not searched: large.log',)
    with pytest.raises(WorkspaceError, match='has 50 bytes, more than the 30 allowed'):
        await box.call('grep', 'TODO', 'large.log')
    with pytest.raises(WorkspaceError, match='is not a text file'):
        await box.call('grep', 'TODO', 'data.bin')


async def test_a_regular_expression_that_never_ends_is_stopped(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, 'MAX_SECONDS', 0.5)
    (tmp_path / 'x').write_text('a' * 50 + 'b\n')
    with pytest.raises(WorkspaceError, match=r'took longer than 0\.5 s: use a simpler expression'):
        await box.call('grep', '(a+)+$')
