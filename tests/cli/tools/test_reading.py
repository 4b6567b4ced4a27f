"""`habilis tools list`, `search`, `show`, `history` and `stats`."""

from pathlib import Path

import pytest

from habilis.forge.library.library import Library
from tests.cli.process import habilis, on_terminal
from tests.cli.tools.conftest import Tools, data
from tests.forge.samples import double


def test_what_the_review_noted_is_shown(tools: Tools, library: Library) -> None:
    library.add(double('again'), findings=('prints, which nobody sees',))
    assert 'review:   prints, which nobody sees\n' in tools('show', 'again').stdout
    assert data(tools('show', 'again', '--json'))['findings'] == ['prints, which nobody sees']


def test_the_list_has_version_uses_success_and_summary(tools: Tools, library: Library) -> None:
    library.usage.record('double', 1, ok=True, seconds=1)
    library.usage.record('double', 1, ok=False, seconds=1)
    lines = tools('list').stdout.splitlines()
    assert [line.split() for line in lines] == [
        ['NAME', 'VERSION', 'USES', 'OK', 'SUMMARY'],
        ['double', '1', '2', '50%', 'Twice', 'a', 'number.'],
        ['fourfold', '1', '0', '–', 'Four', 'times', 'a', 'number.'],
    ]
    [first, _] = data(tools('list', '--json'))
    assert (first['name'], first['version'], first['calls'], first['failed']) == ('double', 1, 2, 1)


def test_the_list_fits_the_terminal(tools: Tools, library: Library) -> None:
    library.add(double('long', summary='Words and words. ' * 40))
    shown = tools('list', env={'COLUMNS': '80'}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert '…' in shown


def test_an_empty_library_says_how_to_fill_it(tmp_path: Path) -> None:
    done = habilis('tools', 'list', '--library', str(tmp_path / 'none'))
    assert (done.returncode, done.stdout) == (0, '')
    assert 'habilis tools seed' in done.stderr
    assert not (tmp_path / 'none').exists()


def test_the_library_of_a_new_installation_has_the_tools_that_come_with_habilis(tmp_path: Path) -> None:
    done = habilis('tools', 'search', '15 percent of 300', env={'HABILIS_DATA': str(tmp_path)})
    assert (done.returncode, 'percent_of' in done.stdout) == (0, True)
    assert 'first use: testing' in done.stderr
    assert 'first use' not in habilis('tools', 'list', env={'HABILIS_DATA': str(tmp_path)}).stderr


def test_help_lists_what_is_for_every_day_first() -> None:
    everyday, heading, more = habilis('tools', '--help').stdout.partition('\nMore:\n')
    assert heading
    assert '  search ' in everyday
    assert '  optimise ' in more


def test_the_library_comes_from_the_settings(library: Library, tmp_path: Path) -> None:
    assert 'double' in habilis('tools', 'list', env={'HABILIS_LIBRARY': str(library.folder)}).stdout
    library.folder.rename(tmp_path / 'data')
    (tmp_path / 'outer').mkdir()
    (tmp_path / 'data').rename(tmp_path / 'outer' / 'library')
    assert 'double' in habilis('tools', 'list', env={'HABILIS_DATA': str(tmp_path / 'outer')}).stdout


def test_a_library_that_is_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    done = habilis('tools', 'list', '--library', str(tmp_path / 'file'))
    assert done.returncode == 2
    assert 'is a file, not a folder' in done.stderr
    assert habilis('tools', 'list', env={'HABILIS_LIBRARY': str(tmp_path / 'file')}).returncode == 1


def test_search_finds_and_says_if_nothing_fits(tools: Tools) -> None:
    assert 'double' in tools('search', 'twice a number').stdout
    [found] = data(tools('search', 'twice', '--limit', '1', '--json'))
    assert (found['name'], found['score'] > 0.5) == ('double', True)
    done = tools('search', 'weather')
    assert (done.returncode, done.stdout) == (1, '')
    assert tools('search', 'twice the weather of Paris', '--threshold', '0.9').returncode == 1
    assert tools('search', 'x', '--threshold', '2').returncode == 2


@pytest.mark.parametrize('query', ['', '"', '* OR *', "'; DROP TABLE tools", '\U0001f600', '-x'])
def test_any_query_is_answered(tools: Tools, query: str) -> None:
    done = tools('search', '--', query)
    assert done.returncode in (0, 1)
    assert 'unexpected' not in done.stderr


def test_show_has_signature_documentation_origin_code_and_tests(tools: Tools, library: Library) -> None:
    shown = tools('show', 'double').stdout
    for part in ('double(number: int) -> int', 'Twice a number.', 'Double it.', 'return number * 2', 'def test_three'):
        assert part in shown
    library.add(double(factor=3), replaces=True, note='more')
    assert 'version 2 is in use' in tools('show', 'double', '--version', '1').stdout
    assert data(tools('show', 'double', '--json'))['note'] == 'more'


def test_show_is_coloured_on_a_terminal_and_harmless(library: Library) -> None:
    library.add(double('sly', summary='Sly \\x1b[2J one.'))
    path = library.folder / 'sly' / 'v1' / 'tool.py'
    path.write_text(path.read_text() + '# \x1b]0;owned\x07\n')
    with on_terminal('tools', 'show', 'sly', '--library', str(library.folder)) as terminal:
        shown = terminal.wait_for('edited by hand')
    assert '\x1b]0;' not in shown
    assert '\x1b[' in shown


@pytest.mark.parametrize(
    ('command', 'name'),
    [*((command, '../x') for command in ('show', 'history', 'run', 'test', 'rm')), ('show', 'json'), ('show', 'nope')],
)
def test_a_name_that_is_not_there_is_one_line(tools: Tools, command: str, name: str) -> None:
    done = tools(command, name)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.startswith('habilis: ')
    assert len(done.stderr.splitlines()) == 1
    assert 'unexpected' not in done.stderr


def test_history_shows_the_version_in_use(tools: Tools, library: Library) -> None:
    library.add(double(factor=3), replaces=True, note='more')
    library.use_version('double', 1)
    rows = tools('history', 'double').stdout.splitlines()
    assert rows[1].split()[0] == '2'
    assert 'more' in rows[1]
    assert 'in use' in rows[2]
    assert [(one['version'], one['current']) for one in data(tools('history', 'double', '--json'))] == [
        (2, False),
        (1, True),
    ]


def test_stats_show_calls(tools: Tools, library: Library) -> None:
    assert 'no tool was called yet' in tools('stats').stderr
    for _ in range(6):
        library.usage.record('double', 1, ok=False, seconds=0.5)
    shown = tools('stats').stdout
    assert shown.splitlines()[1].split()[:5] == ['double', '1', '6', '0%', '0.500']
    assert [(one['name'], one['calls']) for one in data(tools('stats', '--json'))] == [('double', 6)]


def test_suggest_ranks_composes_and_proposes_retirement(tools: Tools, library: Library) -> None:
    assert 'nothing to suggest' in tools('suggest').stderr
    for _ in range(6):
        library.usage.record('double', 1, ok=False, seconds=0.5)
    library.usage.record('fourfold', 1, ok=True, seconds=0.5)
    for task in ('first', 'eight times two'):
        library.usage.record_request(task, ['double', 'fourfold'], ok=True)
    shown = tools('suggest').stdout.splitlines()
    assert shown == [
        'most successful:',
        '  fourfold: 1 of 1 calls',
        'worked together, so one tool may do it:',
        "  habilis tools compose double fourfold --name NAME  # 2 runs, such as 'eight times two'",
        'may be deleted (habilis tools rm NAME):',
        '  double: 6 of 6 calls failed',
    ]
    assert data(tools('suggest', '--json'))['retire'] == [{'name': 'double', 'reason': '6 of 6 calls failed'}]


def test_a_damaged_tool_is_named_beside_the_others(tools: Tools, library: Library) -> None:
    (library.folder / 'fourfold' / 'v1' / 'tool.json').write_text('{')
    done = tools('list')
    assert done.returncode == 1
    assert 'double' in done.stdout
    assert 'habilis tools doctor' in done.stderr


def test_a_damaged_usage_log_does_not_hide_the_tools(tools: Tools, library: Library) -> None:
    (library.folder / '.usage.db').write_bytes(b'nonsense' * 100)
    assert 'double' in tools('list').stdout
    assert 'delete it to count from zero' in tools('stats').stderr


def test_help_of_every_subcommand_is_short_of_eighty_columns() -> None:
    shown = habilis('tools', '--help', env={'COLUMNS': '80'}).stdout
    for name in ('list', 'search', 'show', 'test', 'run', 'history', 'rollback', 'rm', 'stats', 'seed', 'edit'):
        assert f'  {name} ' in shown
