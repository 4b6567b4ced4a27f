"""`habilis run`: what it takes, what it shows where, and what it returns."""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from habilis.server.settings import ServiceSettings
from tests.cli.chat import code, script
from tests.cli.process import COMMAND, environment, habilis
from tests.models.test_files import PNG
from tests.place import Place
from tests.server.running import running

LABEL = 'habilis: SCRIPTED: scripted:script replies from a file; no model is used\n'
SAVED = "open('kept.txt', 'w').write('1')"


def run(*arguments: str, stdin: str | bytes = '') -> subprocess.CompletedProcess[str]:
    return habilis('run', *arguments, stdin=stdin)


# Modes ----------------------------------------------------------------------------------------------------------------


def test_a_mode_holds_for_tools_and_code_of_a_run_and_for_the_one_that_resumes_it(place: Place) -> None:
    shared = place.folder / 'shared'
    shared.mkdir()
    both = code("write_file('by_tool.txt', 'a')"), code("open('by_code.txt', 'w')"), code('final_answer(1)')
    model = script(place.folder, *both)

    def names(mode: str) -> list[str]:
        assert run('Write.', '-m', model, '-w', 'shared', '--mode', mode).returncode == 0
        found = sorted(file.name for file in shared.iterdir())
        for file in shared.iterdir():
            file.unlink()
        return found

    assert [names('plan'), names('edits'), names('all')] == [[], *[['by_code.txt', 'by_tool.txt']] * 2]
    asked = run('Write.', '-m', model, '-w', 'shared', '--mode', 'ask', '--run-id', 'r')
    assert (asked.returncode, list(shared.iterdir())) == (4, [])
    habilis('runs', 'approve', 'r')
    habilis('runs', 'resume', 'r')
    assert [file.name for file in shared.iterdir()] == ['by_tool.txt']  # code is still not allowed to


# What is shown --------------------------------------------------------------------------------------------------------


def test_the_answer_goes_to_stdout_and_the_work_to_stderr(place: Place) -> None:
    model = script(place.folder, 'I compute.\n' + code('x = 6 * 7\nprint(x + 1)'), code('final_answer(x)'))
    done = run('What is 6 times 7?', '--model', model)
    assert (done.returncode, done.stdout) == (0, '42\n')
    assert done.stderr.startswith(LABEL)
    for part in ('I compute.', 'x = 6 * 7', '\n43\n', 'step 1', 'done · 2 steps'):
        assert part in done.stderr


def test_subagents_are_shown_below_their_parent_and_switched_on_again_by_resume(place: Place) -> None:
    parts = (
        code('x = await delegate("Double it", variables={"n": 21})'),
        code('final_answer(2 * n)'),
        code('final_answer(x)'),
    )
    done = run('Do it', '--delegate', '--max-steps', '1', '--run-id', 'r', '-m', script(place.folder, *parts))
    assert done.returncode == 3
    assert '\n  code 1 · starts: Double it\n' in done.stderr
    assert habilis('runs', 'resume', 'r', '--max-steps', '5').stdout == '42\n'


def test_quiet_shows_nothing_but_the_answer_and_that_it_is_scripted(place: Place) -> None:
    done = run('Greet', '--quiet', '-m', script(place.folder, code("print('working')\nfinal_answer('hello\\nyou')")))
    assert (done.returncode, done.stdout, done.stderr) == (0, 'hello\nyou\n', LABEL)


def test_an_answer_that_is_no_text_is_shown_as_python_shows_it(place: Place) -> None:
    done = run('Make one', '-q', '-m', script(place.folder, code("final_answer({'a': [1.5, None], 'b': True})")))
    assert done.stdout == "{'a': [1.5, None], 'b': True}\n"


def test_json_has_all_of_the_result(place: Place) -> None:
    model = script(place.folder, code('print(5)\n1 / 0'), code('final_answer((1, 2))'))
    done = run('Make a pair', '--json', '--quiet', '--model', model)
    result = json.loads(done.stdout)
    assert done.returncode == 0
    names = 'output ended question summary steps files usage cost seconds run_id model scripted'
    assert result.keys() == set(names.split())
    assert (result['ended'], result['model'], result['scripted']) == ('answer', 'scripted:script', True)
    assert result['output'] == {'$': 'tuple', 'v': [1, 2]}
    first, second = result['steps']
    assert first.keys() == {'code', 'stdout', 'error', 'seconds'}
    assert (first['code'], first['stdout']) == ('print(5)\n1 / 0', '5\n')
    assert 'ZeroDivisionError' in first['error']
    assert (second['stdout'], second['error']) == ('', None)
    assert result['usage']['requests'] == 2
    assert result['run_id'].startswith('run-')


def test_a_summary_is_printed_beside_the_answer(place: Place) -> None:
    model = script(place.folder, code('final_answer(3)'), 'I counted to three.')
    done = run('Count', '--summary', '--model', model)
    assert done.stdout == '3\n'
    assert done.stderr.endswith('\nI counted to three.\n')
    told = json.loads(run('Count', '--summary', '--json', '--model', model).stdout)
    assert told['summary'] == 'I counted to three.'


def test_text_that_cannot_be_shown_is_escaped(place: Place) -> None:
    model = script(place.folder, code(r"final_answer('a\ud800b')"))
    done = run('Say it', '--model', model)
    assert (done.returncode, done.stdout) == (0, 'a\\ud800b\n')


def test_a_reader_who_goes_away_is_no_error(place: Place) -> None:
    model = script(place.folder, code("final_answer('x' * 1_000_000)"))
    with subprocess.Popen(
        [*COMMAND, 'run', 'Say much', '--quiet', '--model', model],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read().decode() == LABEL
    assert process.returncode == 1


# The task, and what is piped in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('arguments', [(), ('-',)], ids=['nothing', 'a dash'])
def test_without_a_task_stdin_is_the_task(place: Place, arguments: tuple[str, ...]) -> None:
    model = script(place.folder, code('final_answer("stdin" in globals())'))
    done = run(*arguments, '-q', '-m', model, stdin='Is there data?\n')
    assert (done.returncode, done.stdout) == (0, 'False\n')


def test_with_a_task_stdin_is_data(place: Place) -> None:
    done = run('Count the lines', '-q', '-m', script(place.folder, code('final_answer(stdin.split())')), stdin='a é\nb')
    assert (done.returncode, done.stdout) == (0, "['a', 'é', 'b']\n")


def test_data_from_a_file_is_data_too(place: Place) -> None:
    data = place.folder / 'data.txt'
    data.write_bytes(b'\xef\xbb\xbfone\r\ntwo')
    model = script(place.folder, code('final_answer(stdin)'))
    with data.open('rb') as file:
        command = [*COMMAND, 'run', 'Give it back', '--quiet', '--model', model, '--json']
        done = subprocess.run(command, stdin=file, capture_output=True, env=environment(), check=False)
    assert json.loads(done.stdout)['output'] == 'one\r\ntwo'


def test_an_empty_stdin_is_no_data(place: Place) -> None:
    done = run('Is there data?', '-q', '-m', script(place.folder, code('final_answer("stdin" in globals())')))
    assert done.stdout == 'False\n'


def test_silent_stdin_is_awaited_and_announced(place: Place) -> None:
    reading, writing = os.pipe()
    command = [*COMMAND, 'run', 'Wait', '--model', script(place.folder, code('final_answer(stdin)'))]
    with subprocess.Popen(
        command, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        os.close(reading)
        assert process.stderr
        assert process.stdout
        assert b'waiting for data on stdin' in process.stderr.readline()
        os.write(writing, b'late')
        os.close(writing)
        assert process.stdout.read() == b'late\n'


@pytest.mark.parametrize(
    ('arguments', 'stdin', 'complaint'),
    [
        (('',), '', 'the task is empty; for example: habilis run "'),
        ((' \n ',), '', 'the task is empty'),
        ((), '', 'the task is empty'),
        (('-',), '\n\n', 'the task is empty'),
        (('Read it',), b'\xff\xfe\x00', 'stdin is not UTF-8 text; save it to a file'),
        (('a', 'b'), '', 'unexpected extra argument'),
        (('x', '--max-steps', '0'), '', "'--max-steps': expected a number above zero"),
        (('x', '--max-steps', '-3'), '', "'--max-steps'"),
        (('x', '--max-steps', 'many'), '', "'--max-steps'"),
        (('x', '--max-seconds', 'nan'), '', "'--max-seconds': expected a number above zero"),
        (('x', '--max-seconds', 'inf'), '', "'--max-seconds': expected a number above zero"),
        (('x', '--max-cost', '-1'), '', "'--max-cost': expected a number above zero"),
        (('x', '--temperature', '3'), '', "'--temperature'"),
        (('x', '--temperature', 'nan'), '', "'--temperature'"),
        (('x', '--output-type', 'set'), '', "'--output-type'"),
        (('x', '--base-url', 'http://127.0.0.1:1/v1'), '', 'name a model of this server'),
        (('x', '-m', 'tiny', '--base-url', 'nonsense'), '', "--base-url is 'nonsense': expected a URL such as"),
        (('x', '--sandbox', ''), '', '--sandbox'),
        (
            ('x', '--sandbox', 'no-such-place'),
            '',
            "--sandbox is 'no-such-place', which is not available; known: daytona, docker, ",
        ),
        (('x', '--sandbox', 'remote'), '', 'needs the address of its server: add --sandbox-url http://'),
        (
            ('x', '--sandbox-url', 'http://127.0.0.1:1'),
            '',
            '--sandbox-url is not for the sandbox auto; add --sandbox r',
        ),
        (('x', '--sandbox', 'process', '--sandbox-image', 'a'), '', '--sandbox-image is not for the sandbox process; '),
        (('x', '--sandbox-image', ''), '', "'--sandbox-image': the value is empty"),
        (
            ('x', '--mode', 'plan'),
            '',
            'for --mode: a mode is about the files of a folder: name it with --workspace DIR',
        ),
        (('x', '--mode', 'some', '-w', '.'), '', "'--mode'"),
        (('x', '--workspace', ''), '', "'--workspace' / '-w': the value is empty"),
        (('x', '--workspace', __file__), '', 'is a file, not a folder'),
        (('x', '--journal', 'mk.py'), '', "'mk.py' is not a valid journal URL"),
        (('x', '--journal', 'ftp://host/runs'), '', 'no store supports ftp:// URLs'),
        (('x', '--run-id', 'a\nb'), '', "'--run-id': 'a\\nb' contains unprintable characters"),
        (('x', '--file', 'no-such.csv'), '', 'Invalid value for --file: no-such.csv: No such file or directory'),
        (('x', '--image', __file__), '', 'is not a PNG, JPEG, GIF or WebP image'),
        (('x', '--session', ''), '', "'--session': the value is empty"),
    ],
)
def test_wrong_usage_is_said_in_words(arguments: tuple[str, ...], stdin: str | bytes, complaint: str) -> None:
    done = run(*arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in ' '.join(done.stderr.split())
    assert 'Traceback' not in done.stderr


def test_the_help_lists_the_exit_codes() -> None:
    done = run('--help')
    assert done.returncode == 0
    for part in ('0 answered', '3 limit reached', '4 question', '130 Ctrl-C', '--max-cost', 'Examples:'):
        assert part in done.stdout


# Conversations and files ----------------------------------------------------------------------------------------------


def test_a_session_keeps_its_variables_from_one_command_to_the_next(place: Place) -> None:
    first = run('Add up', '-q', '--session', 's', '-m', script(place.folder, code('total = 31\nfinal_answer(total)')))
    assert first.stdout == '31\n'
    again = run('And one', '-q', '--session', 's', '-m', script(place.folder, code('final_answer(total + 1)')))
    assert (again.returncode, again.stdout) == (0, '32\n')


def test_files_are_for_the_code_and_images_for_models_that_see(place: Place) -> None:
    (place.folder / 'a.png').write_bytes(PNG)
    (place.folder / 'b.csv').write_text('a,b\n')
    model = script(place.folder, code("final_answer(open('/inputs/b.csv').read())"))
    done = run('Read it', '-q', '--file', str(place.folder / 'b.csv'), '-m', model)
    assert (done.returncode, done.stdout) == (0, 'a,b\n\n')
    done = run('Look', '-q', '--image', str(place.folder / 'a.png'), '-m', model)
    assert (done.returncode, done.stdout) == (1, '')
    assert 'scripted:script does not see images (a.png); use a model that does' in done.stderr


# How it ends ----------------------------------------------------------------------------------------------------------


def test_an_answer_of_the_wanted_type_is_enforced(place: Place) -> None:
    done = run('How many?', '-q', '--output-type', 'int', '-m', script(place.folder, code("final_answer('7')")))
    assert (done.returncode, done.stdout) == (0, '7\n')
    model = script(place.folder, code("final_answer('seven')"), code('final_answer(7)'))
    assert json.loads(run('How many?', '--output-type', 'int', '--json', '-m', model).stdout)['output'] == 7


def test_an_answer_that_never_fits_is_reported(place: Place) -> None:
    done = run('How many?', '-q', '--output-type', 'int', '-m', script(place.folder, *['seven'] * 10))
    assert (done.returncode, done.stdout) == (3, '')
    assert 'no answer had the type int; try another model' in done.stderr


@pytest.mark.parametrize(
    ('options', 'complaint'),
    [
        (('--max-steps', '1'), 'stopped at the limit of 1 step without an answer; raise the limit with --max-steps 2'),
        (
            ('--max-seconds', '0.4'),
            'stopped at the limit of 0.4 s without an answer; raise the limit with --max-seconds 0.8',
        ),
    ],
)
def test_a_limit_is_named_with_what_raises_it(place: Place, options: tuple[str, ...], complaint: str) -> None:
    model = script(place.folder, code('import time\ntime.sleep(0.3)'), code('time.sleep(5)'), 'never said')
    done = run('Take long', '--quiet', '--model', model, *options, '--journal', 'off')
    assert (done.returncode, done.stdout) == (3, '')
    assert done.stderr == f'{LABEL}habilis: {complaint}\n'


def test_a_limit_is_named_with_how_to_continue(place: Place) -> None:
    model = script(place.folder, code('x = 1'), 'never said')
    done = run('Take long', '--quiet', '--model', model, '--max-steps', '1', '--run-id', 'run-1')
    assert (done.returncode, done.stdout) == (3, '')
    advice = 'stopped at the limit of 1 step without an answer; resume with: habilis runs resume run-1'
    assert done.stderr == f'{LABEL}habilis: {advice}\n'


def test_a_limit_of_the_settings_is_named_by_its_setting(place: Place) -> None:
    place.environment(HABILIS_MAX_RUN_TOKENS='10')
    done = run('Think', '-q', '-m', script(place.folder, code('x = 1'), 'never said'), '--journal', 'off')
    assert done.returncode == 3
    assert 'the limit of 10 tokens without an answer; raise the limit with HABILIS_MAX_RUN_TOKENS' in done.stderr


def test_json_has_the_limit_too(place: Place) -> None:
    done = run('Go on', '--json', '-q', '--max-steps', '1', '-m', script(place.folder, code('x = 1'), 'never said'))
    result = json.loads(done.stdout)
    assert (done.returncode, result['ended'], result['output'], len(result['steps'])) == (3, 'max_steps', None, 1)


def test_a_question_without_a_person_to_answer_is_printed(place: Place) -> None:
    model = script(place.folder, code("colour = ask_user('Which colour?')"), 'never said')
    done = run('Paint it', '--quiet', '--model', model, '--run-id', 'run-1')
    assert (done.returncode, done.stdout) == (4, '')
    asks = 'habilis: the agent asks: Which colour?\n'
    assert done.stderr == f'{LABEL}{asks}habilis: answer with: habilis runs resume run-1 --answer TEXT\n'
    alone = run('Paint it', '--quiet', '--model', model, '--journal', 'off')
    assert (alone.returncode, alone.stderr) == (4, f'{LABEL}{asks}')
    asked = run('Paint it', '--json', '-q', '--model', model)
    assert (asked.returncode, json.loads(asked.stdout)['question']) == (4, 'Which colour?')
    assert json.loads(asked.stdout)['steps'][0]['error'] is None


def test_a_question_does_not_look_like_a_failure(place: Place) -> None:
    model = script(place.folder, code("colour = ask_user('Which colour?')"), 'never said')
    done = run('Paint it', '--model', model)
    assert "→ ask_user(question='Which colour?')" in done.stderr
    assert '\nwaiting for an answer · 1 step' in done.stderr
    for word in ('NeedsAnswer', 'failed', 'stopped'):
        assert word not in done.stderr


def test_a_workspace_is_shared_and_made(place: Place) -> None:
    folder = place.folder / 'new' / 'data'
    done = run(
        'Save it',
        '-q',
        '-w',
        str(folder),
        '--create',
        '-m',
        script(place.folder, code(f'{SAVED}\nfinal_answer("saved")')),
    )
    assert done.returncode == 0
    assert (folder / 'kept.txt').read_text() == '1'


@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('dangling', 'does not exist'),
        ('loop', 'Symlink loop' if sys.version_info < (3, 13) else 'Too many levels of symbolic links'),
        ('file/below', 'is not a folder'),
        ('x' * 300, 'File name too long'),
        ('/proc/1/root/no-such-folder', 'cannot be used'),
    ],
)
def test_a_workspace_that_cannot_be_used_is_one_line(place: Place, name: str, reason: str) -> None:
    (place.folder / 'file').touch()
    (place.folder / 'dangling').symlink_to(place.folder / 'nothing')
    (place.folder / 'loop').symlink_to(place.folder / 'loop')
    done = run('Do it', '-q', '-w', name, '--create', '-m', script(place.folder, code('final_answer(1)')))
    assert (done.returncode, done.stdout) == (1, '')
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 2  # the first says that the model is scripted
    assert not any(word in done.stderr for word in ('Traceback', 'bug', 'panicked'))
    assert not (place.folder / 'nothing').exists()


def test_a_journal_that_cannot_be_used_is_said_in_whole_sentences(place: Place) -> None:
    (place.folder / 'file').touch()
    with sqlite3.connect(place.folder / 'other.db') as other:
        other.execute('create table mine (x)')
    for journal, reason in (('files:file', 'it is a file; give a folder'), ('other.db', 'give another file')):
        done = run('Do it', '-q', '--journal', journal, '-m', script(place.folder, code('final_answer(1)')))
        assert done.returncode == 1
        assert f'{reason}. The run was not started; name another journal' in done.stderr


def test_a_sandbox_of_a_server_runs_and_resumes_with_the_key_of_the_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'a-key-of-the-server-1234'
    with running(ServiceSettings(port=0, keys=(key,))) as url:
        options = ('--sandbox', 'remote', '--sandbox-url', url, '--run-id', 'r', '--max-steps', '1', '-q')
        model = script(place.folder, code('x = 6 * 7'), code('final_answer(x)'))
        refused = run('Compute', *options, '-m', model)
        assert (refused.returncode, refused.stderr.count('\n')) == (1, 2)
        assert 'HABILIS_SANDBOX_KEY' in refused.stderr
        monkeypatch.setenv('HABILIS_SANDBOX_KEY', key)
        assert run('Compute', *options, '-m', model).returncode == 3
        assert habilis('runs', 'resume', 'r', '--max-steps', '5', '-q').stdout == '42\n'
    recorded = habilis('runs', 'export', 'r').stdout
    assert url in recorded
    assert key not in recorded


def test_without_a_workspace_no_file_of_this_machine_is_there(place: Place) -> None:
    tried = code("import os\nfinal_answer([os.path.exists(p) for p in ('/etc/passwd', 'script.jsonl')])")
    assert run('Look around', '-q', '-m', script(place.folder, tried)).stdout == '[False, False]\n'


def test_an_error_of_the_sandbox_is_one_line(place: Place) -> None:
    place.environment(HABILIS_SANDBOX='no-such-place')
    done = run('Do it', '-q', '-m', script(place.folder, 'done'))
    assert (done.returncode, done.stdout) == (1, '')
    label, error = done.stderr.splitlines()
    assert label == LABEL.strip()
    assert error.startswith('habilis: ')
    assert 'no-such-place' in error


def test_a_journal_that_cannot_be_created_leaves_no_run_to_resume(place: Place) -> None:
    done = run('Do it', '-q', '-m', script(place.folder, 'done'), '--journal', str(place.folder / 'script.jsonl/y.db'))
    assert (done.returncode, done.stdout) == (1, '')
    last = done.stderr.splitlines()[-1]
    assert 'is unavailable' in last
    assert last.endswith('The run was not started; name another journal with --journal, or off')
    assert 'What was saved' not in last


@pytest.mark.parametrize(
    ('run_id', 'shown'),
    [('a b;c', "habilis runs resume 'a b;c'"), ('--json', 'habilis runs resume --journal my.db -- --json')],
)
def test_the_command_that_continues_can_be_pasted(place: Place, run_id: str, shown: str) -> None:
    more = ('--journal', 'my.db') if run_id == '--json' else ()
    model = script(place.folder, code('x = 1'), code('final_answer(x)'))
    stopped = run('Count', '-q', '-m', model, '--max-steps', '1', f'--run-id={run_id}', *more)
    assert stopped.stderr.endswith(f'resume with: {shown}\n')
    done = habilis(*shlex.split(shown)[1:])
    assert (done.returncode, done.stdout) == (0, '1\n')


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


def interrupted(*arguments: str, after: str) -> tuple[int, str, str]:
    """Send a real SIGINT once this is shown on stderr; return code, stdout and stderr."""
    command = [*COMMAND, 'run', 'Take long', *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stderr
        shown = ''
        while after not in shown:
            line = process.stderr.readline()
            assert line, shown
            shown += line
        process.send_signal(signal.SIGINT)
        stdout, rest = process.communicate(timeout=600)
    return process.returncode, stdout, shown + rest


def test_ctrl_c_stops_the_code_and_says_how_to_resume(place: Place) -> None:
    model = script(place.folder, code(SAVED), code("print('looping')\nwhile True: pass"))
    returned, stdout, stderr = interrupted('-w', 'data', '--create', '-m', model, '--journal', 'off', after='looping\n')
    assert (returned, stdout) == (130, '')
    last = stderr.splitlines()[-1]
    assert last.startswith(
        'habilis: interrupted after 1 step; the run was not recorded, but the files in data are kept'
    )
    assert 'Traceback' not in stderr
    assert (place.folder / 'data' / 'kept.txt').read_text() == '1'


def test_ctrl_c_leaves_nothing_behind(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = place.folder / 'temporary'
    temporary.mkdir()
    monkeypatch.setenv('TMPDIR', str(temporary))
    model = script(place.folder, code("print('looping')\nwhile True: pass"))
    returned, _, stderr = interrupted('--model', model, '--journal', 'off', after='looping\n')
    assert returned == 130
    assert 'interrupted after 0 steps; the run was not recorded' in stderr
    returned, _, stderr = interrupted('--model', model, '--run-id', 'run-1', after='looping\n')
    assert stderr.splitlines()[-1] == 'habilis: interrupted after 0 steps; resume with: habilis runs resume run-1'
    assert list(temporary.iterdir()) == []


def test_a_script_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    done = run('Do it', '-m', f'scripted:{tmp_path / "missing"}')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert done.stderr.startswith('habilis: cannot read the script')
