"""`habilis runs export`, `import` and `diff`."""

import json
import stat
from typing import Any

import pytest

from tests.cli.chat import code
from tests.cli.process import on_terminal
from tests.cli.runs.making import SUM, listed, make, runs
from tests.place import Place

SECRET = 'sk-abcdefghijklmnop1234'


def rows(*arguments: str) -> list[dict[str, Any]]:
    done = runs('export', '--format', 'jsonl', *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# A page ---------------------------------------------------------------------------------------------------------------


def test_a_page_to_share_has_the_run_without_secrets(place: Place) -> None:
    program = f"key = '{SECRET}'\nprint('<script>', key)\nraise ValueError(key)"
    answer = f'All **done** with {SECRET} <img src=x>'
    run = make(place, f'I use {SECRET}.\n' + code(program), code(f'final_answer({answer!r})'), task=f'Use {SECRET}')
    done = runs('export', run, '--html', 'run.html')
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
    page = (place.folder / 'run.html').read_text()
    assert SECRET not in page
    assert '<strong>done</strong>' in page
    assert '&lt;script&gt; ***' in page
    assert "default-src 'none'" in page
    assert '<script' not in page
    assert '<img' not in page
    assert runs('export', run, '--html', 'run.html', '--format', 'jsonl').returncode == 2


# A whole run ----------------------------------------------------------------------------------------------------------


def test_an_exported_run_is_resumed_elsewhere(place: Place) -> None:
    run = make(place, options=('--max-steps', '2'))
    assert runs('export', run, '-o', 'run.txt').stdout == ''
    assert stat.S_IMODE((place.folder / 'run.txt').stat().st_mode) == 0o600
    imported = runs('import', 'run.txt', '--journal', 'other.db')
    assert (imported.returncode, imported.stdout) == (0, f'{run}\n')
    assert runs('resume', run, '-q', '--journal', 'other.db').stdout == '126\n'
    assert [(each['run'], each['status']) for each in listed()] == [(run, 'stopped')]


def test_an_imported_run_gets_nothing_of_this_machine_that_was_not_said_here(place: Place) -> None:
    replies = (code('x = 1'), code("import os\nfinal_answer('diary.txt' in os.listdir('.'))"))
    run = make(place, *replies, options=('--max-steps', '1', '--workspace', 'private', '--create'))
    (place.folder / 'private' / 'diary.txt').touch()
    runs('export', run, '-o', 'run.txt')
    runs('import', 'run.txt', '--run-id', 'copy')
    fork = runs('fork', 'copy', '--at', '1', '--no-resume').stdout.strip()
    for stranger in ('copy', fork):
        done = runs('resume', stranger)
        assert (done.returncode, done.stdout) == (1, '')
        assert '--workspace DIR' in done.stderr
    assert runs('resume', 'copy', '-q', '--workspace', 'empty').stdout == 'False\n'
    assert runs('resume', run, '-q').stdout == 'True\n'


def test_a_run_that_is_there_is_not_overwritten(place: Place) -> None:
    run = make(place)
    text = runs('export', run).stdout
    refused = runs('import', '-', stdin=text)
    assert (refused.returncode, f'the run {run} exists already' in refused.stderr) == (1, True)
    assert runs('import', '-', '--run-id', 'copy', stdin=text).stdout == 'copy\n'
    assert runs('diff', run, 'copy').returncode == 0


@pytest.mark.parametrize('text', [b'', b'nonsense', b'\xff\xfe', b'habilis run 1\n{}\nend 0 x\n'])
def test_a_file_that_is_no_run_is_refused(place: Place, text: bytes) -> None:
    done = runs('import', '-', stdin=text)
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert done.stderr.startswith('habilis: ')
    assert listed() == []


def test_files_that_cannot_be_read_or_written_are_named(place: Place) -> None:
    run = make(place)
    assert runs('import', 'missing').stderr == 'habilis: cannot read missing: No such file or directory\n'
    assert runs('export', run, '-o', '.').stderr == 'habilis: cannot write .: Is a directory\n'


@pytest.mark.parametrize(
    'arguments', [(), ('a', 'b'), ('--all',), ('a', '--all', '--format', 'jsonl'), ('a', '--format', 'xml')]
)
def test_export_says_what_it_wants(arguments: tuple[str, ...]) -> None:
    assert runs('export', *arguments).returncode == 2


# Rows -----------------------------------------------------------------------------------------------------------------


def test_a_row_has_the_messages_and_the_result(place: Place) -> None:
    run = make(place, options=('--max-steps', '2'))
    first, second = rows(run)
    assert (first['run'], first['step'], first['model']) == (run, 1, 'scripted:script')
    assert [message['role'] for message in first['messages']] == ['system', 'user']
    assert 'What is it?' in first['messages'][1]['content']
    assert (first['reply'], first['code']) == (SUM[0], 'x = 6 * 7\nprint(x + 1)')
    assert '43' in first['observation']
    assert [message['role'] for message in second['messages']] == ['system', 'user', 'assistant', 'user']
    assert second['messages'][2:] == [
        {'role': 'assistant', 'content': SUM[0]},
        {'role': 'user', 'content': first['observation']},
    ]
    assert (first['reward'], second['reward']) == (None, 0.0)
    assert first['usage']['requests'] == 1
    runs('resume', run)
    assert [row['reward'] for row in rows(run)] == [None, None, 1.0]
    assert rows(run) == rows(run)


def test_all_runs_are_exported_the_oldest_first_and_only_ones_own(place: Place) -> None:
    first, second = make(place), make(place)
    make(place, options=('--user', 'ada'))
    assert list(dict.fromkeys(row['run'] for row in rows('--all'))) == [first, second]
    assert list(dict.fromkeys(row['run'] for row in rows(second, first))) == [second, first]


def test_rows_hold_no_secrets(place: Place) -> None:
    place.environment(SHOP_API_KEY='open sesame')
    run = make(place, code(f"key = '{SECRET}'\nprint(key, 'open sesame')\nfinal_answer(1)"), task=f'Use {SECRET}')
    text = runs('export', run, '--format', 'jsonl').stdout
    assert SECRET not in text
    assert 'open sesame' not in text
    assert '***' in text


# diff -----------------------------------------------------------------------------------------------------------------


def test_equal_runs_are_equal(place: Place) -> None:
    done = runs('diff', make(place), make(place))
    assert done.returncode == 0, done.stdout
    assert 'the runs are equal' in done.stdout


def test_the_first_difference_is_named_and_steps_are_compared_line_by_line(place: Place) -> None:
    first = make(place)
    second = make(place, SUM[0], code('y = x * 3\nprint(y)'), SUM[2])
    done = runs('diff', first, second)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == 'first difference: agent#1/ask#2'
    assert '-y = x * 2' in lines
    assert '+y = x * 3' in lines
    assert 'agent#1/cell#1' not in done.stdout
    assert any(line.startswith(first) and 'done' in line for line in lines)


def test_steps_that_only_one_run_has_are_reported(place: Place) -> None:
    first = make(place)
    second = make(place, options=('--max-steps', '1'))
    done = runs('diff', first, second)
    assert done.returncode == 1
    assert f'(not in {second})' in done.stdout
    assert f'{first} is done, {second} is stopped' in done.stdout


def test_a_difference_is_coloured_on_a_terminal(place: Place) -> None:
    first, second = make(place), make(place, SUM[0], code('final_answer(1)'))
    with on_terminal('runs', 'diff', first, second) as terminal:
        terminal.wait_for('\x1b[31m-y = x * 2')
        assert terminal.exit_code() == 1


def test_diff_needs_two_runs_or_one_with_checkpoints(place: Place) -> None:
    done = runs('diff', run := make(place))
    assert (done.returncode, done.stdout) == (1, '')
    assert f'{run} has no checkpoints' in done.stderr
    assert runs('diff').returncode == runs('diff', run, run, '--at', '1').returncode == 2
