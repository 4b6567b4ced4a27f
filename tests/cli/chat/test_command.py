"""`habilis chat` as a process: on a terminal, killed and resumed, and with pipes."""

import os
import signal
import sys

import pytest

from habilis.assistant.shared_folders import remember_share
from habilis.core.folders import data_folder
from tests.cli.chat import code, script, streamed
from tests.cli.png_file import png
from tests.cli.process import habilis, on_terminal
from tests.models.protocol_server import Answer, ProtocolServer
from tests.place import Place

WAITS_ONCE = """\
import os, time
again = os.path.exists('flag')
open('flag', 'w').close()
print('half' + 'way', flush=True)
while not again:
    time.sleep(0.1)
final_answer(x + 1)"""
"""A cell that ends only when it is run for the second time."""


def test_a_chat_that_was_killed_in_a_turn_continues_with_its_facts_tasks_and_variables(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    (place.folder / 'work').mkdir()
    notes = "x = 41\nremember('The boat is called Nordlicht')\ncreate_task('Paint the boat')\nfinal_answer('noted')"
    model = script(place.folder, code(notes), code(WAITS_ONCE))
    with on_terminal('chat', '--model', model, '--workspace', 'work', '--mode', 'all') as terminal:
        terminal.wait_for('>')
        terminal.type('My boat is called Nordlicht.\r')
        terminal.wait_for('noted')
        terminal.type('What is one more?\r')
        terminal.wait_for('halfway')
        os.kill(terminal.process.pid, signal.SIGKILL)
    with on_terminal('chat', '--resume') as terminal:
        terminal.wait_for('Paint the boat')
        terminal.wait_for('What is one more?')
        terminal.wait_for('42')
        terminal.type('/memory\r')
        terminal.wait_for('The boat is called Nordlicht')
        terminal.type('q\r')
        terminal.wait_for('habilis chat --resume chat-')
        assert terminal.exit_code() == 0


def test_an_approval_that_waited_when_the_process_was_killed_is_asked_again_with_its_diff(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    (place.folder / 'work').mkdir()
    (place.folder / 'work' / 'boat.txt').write_text('a red boat\n')
    tools = 'from habilis.tools.toolsets.files import Files\nfiles = Files(needs_approval=True)\n'
    (place.folder / 'boat_tools.py').write_text(tools)
    paint = "print('once')\nupdate_file('boat.txt', 'red', 'blue')\nfinal_answer(open('boat.txt').read())"
    model = script(place.folder, code(paint), 'You are welcome.')
    with on_terminal('chat', '--model', model, '--workspace', 'work', '--tools', 'boat_tools:files') as terminal:
        terminal.wait_for('>')
        terminal.type('Paint it.\r')
        terminal.wait_for_row('1 + a blue boat')
        terminal.wait_for('[y/N')
        os.kill(terminal.process.pid, signal.SIGKILL)
    assert (place.folder / 'work' / 'boat.txt').read_text() == 'a red boat\n'
    with on_terminal('chat', '--resume') as terminal:
        terminal.wait_for("update_file(path='boat.txt'")
        terminal.wait_for_row('1 - a red boat')
        terminal.wait_for_row('1 + a blue boat')
        terminal.wait_for('[y/N')
        terminal.type('y\r')
        terminal.wait_for('a blue boat\n')
        terminal.type('Thanks.\r')
        terminal.wait_for('You are welcome.')
        terminal.type('q\r')
        assert terminal.exit_code() == 0
    assert (place.folder / 'work' / 'boat.txt').read_text() == 'a blue boat\n'


def test_a_picture_is_shown_in_a_terminal_that_can(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    draws = f'class Plot:\n    def _repr_png_(self): return {png()!r}\ndisplay(Plot())\nfinal_answer("drawn")'
    place.environment(HABILIS_MODEL=script(place.folder, code(draws)), TERM_PROGRAM='ghostty')
    with on_terminal('chat') as terminal:
        terminal.wait_for('>')
        terminal.type('Draw.\r')
        terminal.wait_for('\x1b_Ga=T')
        terminal.wait_for('figure-1.png (new, ')


def test_habilis_alone_opens_the_chat_in_a_terminal_and_plain_shows_no_control_sequence(place: Place) -> None:
    place.environment(HABILIS_MODEL=script(place.folder, '**Hello** you.'))
    with on_terminal('chat', '--plain', columns=60) as terminal:
        terminal.wait_for('> ')
        terminal.type('hi\n')
        shown = terminal.wait_for('**Hello** you.')
        terminal.type('\x04')
        terminal.wait_for('habilis chat --resume chat-')
        assert terminal.exit_code() == 0
    assert '\x1b' not in shown
    with on_terminal() as terminal:
        terminal.wait_for('>')
        terminal.type('q\r')
        assert terminal.exit_code() == 0


AT_PROMPT = """
import os, sys
from habilis.cli.chat import command
def show_modules():
    os.write(1, b'LOADING ' + ' '.join(sys.modules).encode() + b' .\\n')
    os._exit(0)
command._load = show_modules
from habilis.cli.main import main
main()
"""


def test_the_prompt_of_a_chat_is_drawn_before_what_answers_messages_is_imported(
    place: Place,
) -> None:
    with on_terminal('--no-workspace', command=[sys.executable, '-c', AT_PROMPT]) as terminal:
        shown, _, modules = terminal.wait_for(' .\n').partition('LOADING ')
    assert '\x1b[?2004h' in shown  # pasted text is for the prompt
    assert '>' in shown
    rooms = ('agent', 'assistant', 'journal', 'memory', 'models', 'sandbox', 'tools')
    heavy = {'rich', 'wasmtime', 'httpx', *(f'habilis.{room}' for room in rooms)}
    assert heavy.intersection(modules.split()) == set()


def test_a_chat_without_options_does_not_wait_for_what_reads_options(place: Place) -> None:
    with on_terminal(command=[sys.executable, '-c', AT_PROMPT]) as terminal:
        modules = terminal.wait_for(' .\n').partition('LOADING ')[2].split()
    assert 'prompt_toolkit' in modules
    assert 'pydantic' not in modules


def test_such_a_chat_reports_wrong_settings_as_one_with_options_does(place: Place) -> None:
    (place.folder / 'habilis.toml').write_text('mdoel = "local"\n')
    without, given = habilis('chat', stdin='hi\n'), habilis('chat', '--plain', stdin='hi\n')
    assert 'mdoel' in without.stderr
    assert (without.returncode, without.stdout) == (given.returncode, given.stdout)
    assert without.stderr.splitlines()[-1] == given.stderr.splitlines()[-1]


def test_a_pipe_is_answered_line_by_line(place: Place) -> None:
    model = script(place.folder, 'Hello.', code('final_answer(6 * 7)'))
    done = habilis('chat', '--model', model, stdin='hi\nsix times \\\nseven?\n\n/nonsense\nq\nnever\n')
    assert done.returncode == 1  # /nonsense
    assert '\x1b' not in done.stdout
    assert [line for line in done.stdout.splitlines() if line in ('Hello.', '42')] == ['Hello.', '42']
    assert 'error: no such command: /nonsense' in done.stdout
    assert 'never' not in done.stdout


def test_options_a_message_and_a_pipe_without_a_command_are_what_was_meant(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    place.environment(HABILIS_MODEL=script(place.folder, *['It is 4.'] * 4))
    assert 'It is 4.' in habilis(stdin='hi\n').stdout
    assert habilis('what is 2+2').stdout == 'It is 4.\n'
    with on_terminal('what is 2+2', '-w', '.') as terminal:
        terminal.wait_for_row('> what is 2+2')
        terminal.wait_for_row('It is 4.')
        terminal.wait_for_row('wasm · .')
        terminal.type('exit\r')
        assert terminal.exit_code() == 0
    with on_terminal('-r') as terminal:
        terminal.wait_for_row('Which one?')
        terminal.type('\r')
        terminal.wait_for_row('user: what is 2+2')
        terminal.type('q\r')
        assert terminal.exit_code() == 0
    assert 'what is 2+2' in habilis('sessions', 'show', 'last').stdout
    assert 'did you mean' in habilis('rnus').stderr.lower()


def test_a_chat_is_resumed_in_a_shell_that_does_not_know_its_server_and_offers_other_models_where_it_is_gone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    with ProtocolServer() as server:
        server.will_answer(streamed('Hello.'), streamed('Hello again.'))
        settings = {'HABILIS_BASE_URL': server.base_url('openai'), 'HABILIS_API_KEY': 'a-secret-key'}
        assert 'Hello.' in habilis('chat', '--model', 'tiny', stdin='hi\n', env=settings).stdout
        assert b'a-secret-key' not in b''.join(file.read_bytes() for file in data_folder().rglob('*.*'))
        assert 'Hello again.' in habilis('chat', '--resume', stdin='hi\n').stdout
    place.project(f'[models.other]\nmodel = "{script(place.folder, "Here I am.")}"\n')
    with on_terminal('chat', '--resume') as terminal:
        terminal.wait_for('does not answer')
        terminal.wait_for('alias of the settings')
        terminal.wait_for_row('which one? [1]')
        terminal.type('\r')
        terminal.wait_for('scripted:')
        terminal.type('And you?\r')
        terminal.wait_for('Here I am.')


def test_commands_that_look_and_quit_do_not_wait_for_a_turn_that_hangs_and_another_model_takes_over_after_it(
    server: ProtocolServer, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    server.will_answer(Answer(silent_before=True), Answer(silent_before=True))
    place.project(f'[models.other]\nmodel = "{script(place.folder, "Here I am.")}"\n')
    with on_terminal('chat', '--model', 'tiny', '--base-url', server.base_url('openai')) as terminal:
        terminal.wait_for('>')
        terminal.type('hi\r')
        terminal.wait_for_row('waiting for the model')
        terminal.type('/model\r')
        terminal.wait_for_row('alias of the settings')
        terminal.type('/model nobody\r')
        terminal.wait_for_row('error: no such model')
        terminal.type('/model other\r')
        terminal.wait_for_row('other takes over after this turn')
        terminal.type('\x1b')
        terminal.wait_for_row('now scripted:')
        terminal.type('Are you there?\r')
        terminal.wait_for_row('Here I am.')
    with on_terminal('chat', '--model', 'tiny', '--base-url', server.base_url('openai')) as terminal:
        terminal.wait_for('>')
        terminal.type('hi\r')
        terminal.wait_for_row('waiting for the model')
        terminal.type('What comes later.\r/quit\r')
        terminal.wait_for('habilis chat --resume')
        assert terminal.exit_code() == 0
    assert not any(b'What comes later' in request.body for request in server.requests)


@pytest.mark.parametrize('columns', [60, 140])
def test_the_line_above_the_prompt_has_the_context_and_the_time_and_commands_of_the_folder_are_sent(
    place: Place, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    monkeypatch.setenv('HABILIS_BELL', '0.001')
    own = place.folder / '.habilis' / 'commands' / 'greet.md'
    own.parent.mkdir(parents=True)
    own.write_text('# Greet somebody\nSay hello to $ARGUMENTS.\n')
    place.environment(HABILIS_MODEL=script(place.folder, 'Hello, Ann.'))
    with on_terminal('chat', '-w', '.', columns=columns) as terminal:
        terminal.wait_for_row('scripted:script · wasm · .')
        terminal.type('/gr')
        terminal.wait_for_row('Greet somebody')
        terminal.type('eet Ann\r')
        terminal.wait_for_row('Hello, Ann.')
        terminal.wait_for_row('scripted:script · wasm · . (write) · ask · 1% context · ')
        assert terminal.wait_for('\a')
        terminal.type('/context\r')
        terminal.wait_for_row(' of 128,000 tokens (1%)')
        terminal.type('exit\r')
        assert terminal.exit_code() == 0
    assert 'Say hello to Ann.' in habilis('sessions', 'show', 'last').stdout


@pytest.mark.parametrize('columns', [60, 140])
def test_a_folder_that_is_shared_later_is_asked_about_and_stopped_code_does_not_run_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    remember_share(place.folder, 'read')
    write = "write_file('a.txt', 'a')\nprint('be' + 'gun')\nwhile True: pass"
    place.environment(HABILIS_MODEL=script(place.folder, code(write), 'As you like.'))
    with on_terminal('chat', columns=columns) as terminal:
        terminal.wait_for_row('(read)')
        terminal.type('/share write\r')
        terminal.wait_for_row('(write)')
        terminal.type('Write it.\r')
        terminal.wait_for_row('May write_file be called?')
        terminal.type('always a.txt\r')
        terminal.wait_for_row('approved: always a.txt')
        terminal.wait_for_row('begun')
        terminal.type('\x03')
        terminal.wait_for_row('stopped; your next message')
        terminal.type('Do not.\r')
        terminal.wait_for_row('As you like.')
        terminal.type('q\r')
        assert terminal.exit_code() == 0
        rows = terminal.read_all()
    assert sum(row == 'begun' for row in rows) == 1
    assert sum(row.startswith('SCRIPTED: ') for row in rows) == 1  # the model is chosen once


@pytest.mark.parametrize('columns', [60, 140])
def test_a_chat_to_resume_is_chosen_from_a_list_by_its_words(
    place: Place, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    place.environment(HABILIS_MODEL=script(place.folder, 'Fine.'))
    for message in ('Paint the boat red.', 'Feed the cat.', 'Water the roses.'):
        habilis('chat', '-w', '.', stdin=f'{message}\n')
    with on_terminal('--resume', columns=columns) as terminal:
        terminal.wait_for_row('3  Paint the boat red.')
        terminal.wait_for_row('Which one?')
        terminal.type('elephant\r')
        terminal.wait_for_row('no chat has these words')
        terminal.type('CAT feed\r')
        terminal.wait_for_row('user: Feed the cat.')
        terminal.type('q\r')
        assert terminal.exit_code() == 0
    assert 'user: Water the roses.' in habilis('chat', '--resume', stdin='').stdout


@pytest.mark.parametrize('columns', [60, 80, 140])
def test_changes_of_files_are_shown_as_diffs_where_they_happen_and_in_one_line_at_the_end(
    columns: int, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    (place.folder / 'work').mkdir()
    (place.folder / 'work' / 'boat.py').write_text('red = 1\nold = 2\n')
    paint = (
        "update_file('boat.py', 'red', 'blue')\n"
        "open('b.bin', 'wb').write(b'\\0')\n"
        "open('long.txt', 'w').write('line\\n' * 100)\n"
        "final_answer('ok')"
    )
    place.environment(HABILIS_MODEL=script(place.folder, code(paint), 'Welcome.'))
    with on_terminal('chat', '-w', 'work', '--mode', 'all', columns=columns) as terminal:
        terminal.wait_for('>')
        terminal.type('Paint it.\r')
        terminal.wait_for_row('changed 3 files: b.bin new, 1 bytes, boat.py +1 −1,')
        terminal.type('/diff\r')
        terminal.wait_for_row('100 + line')
        terminal.type('Thanks.\r')
        terminal.wait_for_row('Welcome.')
        terminal.type('q\r')
        assert terminal.exit_code() == 0
        rows = terminal.read_all()
    assert sum('changed 3 files' in row for row in rows) == 1
    changed = rows.index('boat.py +1 −1')
    assert rows[changed + 1 : changed + 4] == ['1 - red = 1', '1 + blue = 1', '2   old = 2']
    assert '… 61 more lines: /diff' in rows
