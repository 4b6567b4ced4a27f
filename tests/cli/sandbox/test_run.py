"""`habilis sandbox run`: what it shows where, and what it returns."""

import ctypes
import json
import signal
import socket
import subprocess
import time
from dataclasses import fields
from pathlib import Path

import pytest

from habilis.sandbox.contract import Cell
from tests.cli.process import COMMAND, PATIENCE, environment, habilis, on_terminal


def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run code that comes by stdin."""
    return habilis('sandbox', 'run', '-', *options, stdin=code)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / 'script.py'


# What is shown --------------------------------------------------------------------------------------------------------


def test_output_goes_where_it_belongs() -> None:
    done = run('import sys\nprint("out")\nprint("err", file=sys.stderr)')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'out\n', 'err\n')


def test_the_last_value_is_shown_as_in_a_notebook() -> None:
    done = run('print("a", end="")\n{"b": (1, None)}')
    assert (done.returncode, done.stdout) == (0, "a\n{'b': (1, None)}\n")


@pytest.mark.parametrize('code', ['', '# nothing', 'x = 1', 'None'])
def test_without_a_value_nothing_is_shown(code: str) -> None:
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


def test_what_is_displayed_is_shown_as_far_as_a_terminal_can() -> None:
    code = 'class Page:\n    def _repr_html_(self): return "<b></b>"\ndisplay(3)\ndisplay(Page())\n'
    assert run(code).stdout == '3\n(text/html, 7 characters)\n'


def test_pictures_are_saved_in_the_workspace_or_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))
    monkeypatch.chdir(tmp_path)
    code = 'class Dot:\n    def _repr_svg_(self): return "<svg/>"\nprint(1, end="")\ndisplay(Dot())\n'
    assert run(code, '--workspace', 'shared').stdout == '1\nshared/figure-1.svg (new, 6 bytes)\n'
    [path] = json.loads(run(code, '--json').stdout)['pictures']
    assert path.startswith(f'{tmp_path}/data/pictures/sandbox-')
    assert Path(path).read_text() == '<svg/>'
    kept = run(code, '--workspace', 'shared', '--read-only').stdout
    assert kept.startswith('1\ndata/pictures/sandbox-')


def test_another_backend_runs_it() -> None:
    done = run('import sys\nsys.platform', '--sandbox', 'process')
    assert (done.returncode, done.stdout, done.stderr) == (0, "'linux'\n", '')


def test_a_file_is_run_under_its_name(script: Path) -> None:
    script.write_text('def broken():\n    return 1 / 0\n\nbroken()\n')
    done = habilis('sandbox', 'run', str(script))
    assert done.returncode == 1
    assert done.stdout == ''
    assert f'File "{script}", line 2, in broken\n    return 1 / 0\n' in done.stderr
    assert done.stderr.endswith('ZeroDivisionError: division by zero\n')


def test_a_file_is_decoded_as_python_does_it(script: Path) -> None:
    script.write_bytes('# -*- coding: latin-1 -*-\nprint("café")'.encode('latin-1'))
    assert habilis('sandbox', 'run', str(script)).stdout == 'café\n'


def test_a_byte_order_mark_and_windows_lines_are_no_trouble(script: Path) -> None:
    script.write_bytes(b'\xef\xbb\xbfif True:\r\n    print(1)\r\n')
    assert habilis('sandbox', 'run', str(script)).stdout == '1\n'


def test_text_that_cannot_be_shown_is_escaped() -> None:
    assert run(r'print("a\ud800b")').stdout == 'a\\ud800b\n'
    done = habilis('sandbox', 'run', '-', stdin='print("é")', env={'PYTHONIOENCODING': 'ascii'})
    assert (done.returncode, done.stdout) == (0, '\\xe9\n')


def test_output_comes_while_the_code_runs() -> None:
    with subprocess.Popen(
        [*COMMAND, 'sandbox', 'run', '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b'import time\nprint("first")\ntime.sleep(1.5)\nprint("second")')
        process.stdin.close()
        assert process.stdout.readline() == b'first\n'
        before = time.monotonic()
        assert process.stdout.readline() == b'second\n'
        assert time.monotonic() - before > 1


# What is returned -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('code', 'options', 'returned', 'said'),
    [
        ('raise ValueError("no")', (), 1, 'ValueError: no'),
        ('x = (', (), 1, 'SyntaxError'),
        ('import sys; sys.exit(7)', (), 7, ''),
        ('import sys; sys.exit()', (), 0, ''),
        ('exit(-1)', (), 255, ''),
        ('import sys; sys.exit("that is all")', (), 1, 'that is all'),
        (
            'while True: pass',
            ('--seconds', '0.3'),
            124,
            'habilis: the time limit of 0.3 s was reached; raise the limit with --seconds',
        ),
        ('x = bytearray(300 << 20)', (), 137, 'MB was reached; raise the limit with --memory-mb'),
        (
            'x = bytearray(60 << 20)',
            ('--memory-mb', '64'),
            137,
            'MB was reached; raise the limit with --memory-mb',
        ),
        ('x = bytearray(300 << 20)', ('--memory-mb', '512'), 0, ''),
        ('for i in range(300_000): print(i)', (), 1, 'habilis: the output limit of 1,000,000 bytes was reached'),
        ('input()', (), 1, 'EOFError: input() cannot read stdin'),
    ],
)
def test_the_exit_code_says_how_it_ended(code: str, options: tuple[str, ...], returned: int, said: str) -> None:
    done = run(code, *options)
    assert done.returncode == returned
    assert said in done.stderr
    if not said:
        assert done.stderr == ''


def test_ctrl_c_ends_the_code_cleanly() -> None:
    with on_terminal('sandbox', 'run', '/dev/stdin') as terminal:
        terminal.type('print("re" + "ady")\nwhile True: pass\n\x04')
        terminal.wait_for('ready')
        terminal.type('\x03')
        terminal.wait_for('habilis: the cell was cancelled', seconds=5)
        assert terminal.exit_code() == 130


def test_ctrl_c_ends_code_that_waits_for_input(script: Path) -> None:
    script.write_text('input("who? ")')
    with on_terminal('sandbox', 'run', str(script)) as terminal:
        terminal.wait_for('who? ')
        terminal.type('\x03')
        terminal.wait_for('habilis: the cell was cancelled', seconds=5)
        assert terminal.exit_code() == 130


def test_an_interrupted_run_still_gives_its_json(script: Path) -> None:
    script.write_text('print("so far")\nopen("ready", "w").close()\nwhile True: pass')
    options = ['--json', '--workspace', str(script.parent)]
    process = subprocess.Popen(
        [*COMMAND, 'sandbox', 'run', str(script), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    end = time.monotonic() + PATIENCE
    while not (script.parent / 'ready').exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=600)
    cell = json.loads(stdout)
    assert (process.returncode, cell['error']['kind'], cell['stdout']) == (130, 'cancelled', 'so far\n')


# Options --------------------------------------------------------------------------------------------------------------


def test_json_has_all_fields_of_the_cell() -> None:
    done = run('import sys\nprint(1)\nprint(2, file=sys.stderr)\n(3, b"4")', '--json')
    cell = json.loads(done.stdout)
    assert done.returncode == 0
    assert done.stderr == ''
    assert cell.keys() == {'ok', 'pictures', *(field.name for field in fields(Cell))}
    assert (cell['ok'], cell['stdout'], cell['stderr'], cell['text']) == (True, '1\n', '2\n', "(3, b'4')")
    assert cell['value'] == {'$': 'tuple', 'v': [3, {'$': 'bytes', 'v': 'NA=='}]}


def test_json_has_the_error_too() -> None:
    done = run('1 / 0', '--json')
    error = json.loads(done.stdout)['error']
    assert done.returncode == 1
    assert (error['kind'], error['type'], error['line']) == ('exception', 'ZeroDivisionError', 1)


def test_a_workspace_is_shared(tmp_path: Path) -> None:
    (tmp_path / 'in.txt').write_text('42')
    code = 'open("out.txt", "w").write(open("in.txt").read() * 2)'
    cell = json.loads(run(code, '--workspace', str(tmp_path), '--json').stdout)
    assert (tmp_path / 'out.txt').read_text() == '4242'
    assert cell['files'] == [{'path': 'out.txt', 'size': 4, 'change': 'new'}]


def test_a_read_only_workspace_cannot_be_written(tmp_path: Path) -> None:
    done = run('open("out.txt", "w")', '--workspace', str(tmp_path), '--read-only')
    assert done.returncode == 1
    assert 'PermissionError' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_package_from_a_folder_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / 'shapes.py').write_text('SIDES = {"square": 4}')
    done = run('import shapes\nshapes.SIDES["square"]', '--packages', str(tmp_path))
    assert (done.returncode, done.stdout) == (0, '4\n')


def test_only_the_environment_that_is_given_is_inside() -> None:
    done = run('import os\ndict(os.environ)', '--env', 'A=1=2', '--env', 'B=')
    assert done.stdout == "{'A': '1=2', 'B': ''}\n"


def test_a_network_is_there_only_if_granted_and_is_that_of_public_hosts() -> None:
    with socket.create_server(('127.0.0.1', 0)) as server:
        code = f'import socket\nsocket.create_connection(("127.0.0.1", {server.getsockname()[1]}))\nprint("connected")'
        local, none = run(code, '--network', '*'), run(code)
    assert [(done.returncode, done.stdout) for done in (local, none)] == [(1, ''), (1, '')]
    assert 'which is not a public address' in local.stderr
    assert 'this sandbox has no network' in none.stderr


def test_input_is_read_from_stdin(script: Path) -> None:
    script.write_text('print("hello")\nname = input("who? ")\nname, input()')
    done = habilis('sandbox', 'run', str(script), stdin='Ann\nBo')
    assert (done.returncode, done.stdout) == (0, "hello\nwho? ('Ann', 'Bo')\n")


def test_input_at_its_end_is_an_end_of_file(script: Path) -> None:
    script.write_text('input()')
    done = habilis('sandbox', 'run', str(script))
    assert done.returncode == 1
    assert done.stderr.endswith('EOFError: EOF when reading a line\n')


# Wrong usage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('name', 'reason'), [('missing.py', 'No such file or directory'), ('.', 'Is a directory')])
def test_a_file_that_is_not_there_is_one_clear_line(name: str, reason: str) -> None:
    done = habilis('sandbox', 'run', name)
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr == f"habilis: cannot read '{name}': {reason}\n"


def _like_anybody() -> None:
    """Root may read everything. Without these two capabilities it is as bound by permissions as everybody."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'prctl'):
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_file_that_may_not_be_read_is_one_clear_line(script: Path) -> None:
    script.touch(mode=0)
    command = [*COMMAND, 'sandbox', 'run', str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_like_anybody)
    assert (done.returncode, done.stderr) == (2, f"habilis: cannot read '{script}': Permission denied\n")


def test_a_path_that_leads_nowhere_is_one_clear_line(script: Path) -> None:
    script.touch()
    done = habilis('sandbox', 'run', f'{script}/below')
    assert (done.returncode, done.stderr) == (2, f"habilis: cannot read '{script}/below': Not a directory\n")


def test_a_file_that_is_not_text_is_one_clear_line(script: Path) -> None:
    script.write_bytes(b'\xff\xfe\x00')
    done = habilis('sandbox', 'run', str(script))
    assert done.returncode == 2
    assert done.stderr.startswith(f"habilis: cannot read '{script}': it is not Python source text")
    assert done.stderr.count('\n') == 1


@pytest.mark.parametrize(
    ('options', 'complaint'),
    [
        (('--seconds', '0'), '--seconds must be a positive number'),
        (('--seconds', 'soon'), "'--seconds'"),
        (('--seconds', 'inf'), '--seconds must be a positive number'),
        (('--memory-mb', '1'), '--memory-mb must be between'),
        (('--memory-mb', '1.5'), "'--memory-mb'"),
        (('--env', 'PATH'), "'PATH' is not NAME=VALUE"),
        (('--env', '=x'), "'=x' is not NAME=VALUE"),
        (('--read-only',), 'name a folder with --workspace'),
        (('another.py',), 'unexpected extra argument'),
        (
            ('--sandbox', 'jail'),
            "there is no sandbox 'jail'; there is daytona, docker, e2b, modal, process, ",
        ),
        (('--sandbox', 'remote'), 'the sandbox remote needs the address of its server: add --sandbox-url http'),
        (('--sandbox-url', 'http://127.0.0.1:8700'), '--sandbox-url is not for the sandbox auto; add --sandbox remote'),
        (('--sandbox-image', 'python'), '--sandbox-image is not for the sandbox auto; add --sandbox docker'),
        (('--allow-weak',), '--allow-weak is not for the sandbox auto; add --sandbox process'),
    ],
)
def test_a_wrong_option_is_named(options: tuple[str, ...], complaint: str) -> None:
    done = run('1', *options)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in done.stderr


def test_a_file_must_be_named() -> None:
    done = habilis('sandbox', 'run')
    assert done.returncode == 2
    assert 'Missing argument' in done.stderr


def test_a_package_that_is_not_there_is_an_error_of_habilis() -> None:
    done = run('1', '--packages', './missing.whl')
    assert (done.returncode, done.stderr) == (1, "habilis: there is no file './missing.whl'\n")


def test_a_workspace_that_is_a_file_or_nothing_is_wrong_usage(script: Path) -> None:
    script.touch()
    done = run('1', '--workspace', str(script))
    assert (done.returncode, done.stdout) == (2, '')
    assert f"Invalid value for '--workspace' / '-w': {script} is a file, not a folder" in done.stderr
    unset = run('open("mine", "w")', '--workspace', '')
    assert (unset.returncode, unset.stdout) == (2, '')
    assert "Invalid value for '--workspace' / '-w': the value is empty" in unset.stderr
