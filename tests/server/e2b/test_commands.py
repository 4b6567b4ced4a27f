# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""Commands, files and code of a sandbox, through the real SDK of E2B."""

import pytest
from e2b import CommandExitException, FileType, InvalidArgumentException, NotFoundException
from e2b_code_interpreter import Sandbox

from habilis.server.e2b.machine import HOME


def test_a_command_has_output_exit_code_folder_and_environment(sandbox: Sandbox) -> None:
    heard: list[str] = []
    done = sandbox.commands.run('echo $A; pwd; echo no >&2', envs={'A': 'b'}, cwd='/tmp', on_stdout=heard.append)
    assert (done.stdout, done.stderr, done.exit_code, ''.join(heard)) == ('b\n/tmp\n', 'no\n', 0, 'b\n/tmp\n')
    with pytest.raises(CommandExitException) as failed:
        sandbox.commands.run('echo half; exit 3')
    assert (failed.value.exit_code, failed.value.stdout) == (3, 'half\n')
    with pytest.raises(NotFoundException, match='No such file'):
        sandbox.commands.run('true', cwd='/nowhere')


def test_a_command_in_the_background_takes_input_is_listed_and_killed(sandbox: Sandbox) -> None:
    cat = sandbox.commands.run('cat', background=True, stdin=True)
    cat.send_stdin('é\n')
    cat.close_stdin()
    assert cat.wait().stdout == 'é\n'
    sleeping = sandbox.commands.run('sleep 1000 & sleep 1000', background=True)
    assert [(each.pid, each.args[-1]) for each in sandbox.commands.list()] == [
        (sleeping.pid, 'sleep 1000 & sleep 1000')
    ]
    assert sleeping.kill()
    with pytest.raises(CommandExitException) as killed:
        sleeping.wait()
    assert killed.value.exit_code == 137
    assert not sandbox.commands.kill(sleeping.pid)
    assert sandbox.commands.run('ps -e 2>/dev/null | grep -c sleep || true').stdout.strip() in ('0', '')


def test_files_are_written_read_listed_moved_and_removed(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 8192
    assert sandbox.files.write('sub/data', data).path == f'{HOME}/sub/data'
    assert bytes(sandbox.files.read(f'{HOME}/sub/data', format='bytes')) == data
    sandbox.files.write('packed', 'text', gzip=True)
    sandbox.files.write_files([{'path': 'one', 'data': '1'}, {'path': '/tmp/two', 'data': b'2'}])
    assert sandbox.commands.run('cat packed one /tmp/two').stdout == 'text12'
    assert [entry.name for entry in sandbox.files.list('.')] == ['one', 'packed', 'sub']
    assert [entry.path for entry in sandbox.files.list('~', depth=2)][-1] == f'{HOME}/sub/data'
    assert sandbox.files.make_dir('deep/er')
    assert not sandbox.files.make_dir('deep')
    assert sandbox.files.rename('one', 'deep/uno').path == f'{HOME}/deep/uno'
    sandbox.commands.run('ln -s uno deep/link')
    link = sandbox.files.get_info('deep/link')
    assert (link.type, link.symlink_target, link.size) == (FileType.SYMLINK, f'{HOME}/deep/uno', 1)
    sandbox.files.remove('deep')
    assert not sandbox.files.exists('deep')
    with pytest.raises(NotFoundException):
        sandbox.files.read('deep/uno')
    with pytest.raises(InvalidArgumentException, match='is not a file'):
        sandbox.files.read('sub')


def test_a_watcher_reports_what_has_changed(sandbox: Sandbox) -> None:
    sandbox.files.write('w/old', '1')
    watcher = sandbox.files.watch_dir('w', recursive=True)
    sandbox.commands.run('cd w; mkdir below; echo 2 > below/new; echo 22 > old')
    assert {(event.name, event.type.value) for event in watcher.get_new_events()} == {
        ('below', 'create'),
        ('below/new', 'create'),
        ('old', 'write'),
    }
    sandbox.files.remove('w/old')
    assert [(event.name, event.type.value) for event in watcher.get_new_events()] == [('old', 'remove')]
    watcher.stop()


def test_code_has_variables_output_results_and_errors(sandbox: Sandbox) -> None:
    heard: list[str] = []
    first = sandbox.run_code(
        "import os, sys\nx = 41\nprint('out')\nsys.stderr.write('err')\nos.system('echo raw')\nx + 1",
        on_stdout=lambda message: heard.append(message.line),
    )
    assert (first.text, first.logs.stderr, ''.join(heard)) == ('42', ['err'], 'out\nraw\n')
    failed = sandbox.run_code('x / 0')
    assert failed.error is not None
    assert (failed.error.name, failed.error.value) == ('ZeroDivisionError', 'division by zero')
    assert 'x / 0' in failed.error.traceback
    assert sandbox.run_code('x', envs={'ONLY': 'here'}).text == '41'


def test_rich_results_come_in_all_their_forms(sandbox: Sandbox) -> None:
    code = (
        "class Table:\n    def __repr__(self): return 'a table'\n    def _repr_html_(self): return '<b>t</b>'\n"
        "class Plot:\n    def _repr_png_(self): return b'\\x89PNG'\n"
        'display(Plot())\nTable()'
    )
    shown, value = sandbox.run_code(code).results
    assert (shown.png, shown.is_main_result) == ('iVBORw==', False)
    assert (value.html, value.text, value.is_main_result) == ('<b>t</b>', 'a table', True)


def test_contexts_share_files_and_no_variables(sandbox: Sandbox) -> None:
    sandbox.run_code("x = 1; open('shared', 'w').write('s')")
    context = sandbox.create_code_context(cwd='/usr')
    assert sandbox.run_code(f"'x' in globals(), open('{HOME}/shared').read()", context=context).text == "(False, 's')"
    sandbox.run_code('import os\nx = os.getcwd()', context=context)
    assert sandbox.run_code('x', context=context).text == "'/usr'"
    sandbox.restart_code_context(context)
    error = sandbox.run_code('x', context=context).error
    assert error is not None
    assert error.name == 'NameError'
    sandbox.remove_code_context(context)
    assert context.id not in [other.id for other in sandbox.list_code_contexts()]
    with pytest.raises(NotFoundException):
        sandbox.run_code('1', context=context)


def test_another_language_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(Exception, match='this server runs Python, not r'):
        sandbox.run_code('1', language='r')
