"""What a person sees while `habilis run` works: a line that lives, code as it is written, a clean end at Ctrl-C."""

import fcntl
import re
import shlex
import struct
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.chat import code, script, streamed
from tests.cli.process import COMMAND, Terminal, habilis, on_terminal
from tests.models.protocol_server import ProtocolServer
from tests.place import Place

CONTROL = re.compile('\x1b\\[[0-9;?]*([A-Za-z])|\r|\n|[^\x1b\r\n]')
HANGING = """
import time
def hang(seconds: float = 1000) -> str:
    '''Wait.'''
    time.sleep(seconds)
    return 'waited'
def chatty() -> str:
    '''Print to the terminal of the person.'''
    print('a tool prints')
    return input('name? ')
"""


def screen(shown: str) -> list[str]:
    """The lines that are left on the screen after all that was written, control sequences included."""
    rows, row, column = [''], 0, 0
    for found in CONTROL.finditer(shown):
        text, command = found[0], found[1]
        if text == '\r':
            column = 0
        elif text == '\n':
            row, column = row + 1, 0
            rows += [''] * (row + 1 - len(rows))
        elif command == 'K':
            rows[row] = rows[row][:column]
        elif command == 'A':
            row = max(0, row - 1)
        elif command is None:
            rows[row] = f'{rows[row][:column].ljust(column)}{text}{rows[row][column + 1 :]}'
            column += 1
    return [line.rstrip() for line in rows]


def rest(terminal: Terminal) -> str:
    """All that is shown until the command ends."""
    while terminal._read(60):  # pyright: ignore[reportPrivateUsage]
        pass
    terminal.exit_code()
    return terminal.shown


@contextmanager
def slow(place: Place, *replies: str, tools: str = '') -> Generator[Terminal]:
    """A run with a script."""
    (place.folder / 'things.py').write_text(HANGING)
    more = ('--tools', tools) if tools else ()
    with on_terminal('run', 'Do it', '-m', script(place.folder, *replies), *more) as terminal:
        yield terminal


def test_the_first_thing_shown_is_that_it_starts(place: Place) -> None:
    with slow(place, 'Fine.') as terminal:
        assert terminal.wait_for('starting · 0 s').strip().startswith('\x1b[2m')
        shown = rest(terminal)
    assert 'writing' in shown or 'waiting for the model' in shown or 'done' in shown


def test_nothing_of_the_line_is_left_at_the_end_and_nothing_is_shown_twice(place: Place) -> None:
    replies = ('I add **them**.\n\n' + code('x = 1\nprint("found", x)'), 'All is **done** here.')
    with slow(place, *replies) as terminal:
        lines = screen(rest(terminal))
    shown = [line for line in lines if line]
    assert shown[1:6] == ['I add them.', '│ x = 1', '│ print("found", x)', 'found 1', shown[5]]
    assert shown[5].startswith('step 1 · ')
    assert shown[6] == 'All is done here.'
    assert [line.partition(' ')[0] for line in shown[7:]] == ['step', 'done']


def test_code_is_shown_before_it_is_complete(server: ProtocolServer) -> None:
    server.will_answer(streamed('Now.\n```python\nfirst = 1\n', 'second = ', silent_after=2))
    with on_terminal('run', 'Code', '-m', 'tiny', '--base-url', server.base_url('openai')) as terminal:
        terminal.wait_for('Now.')
        terminal.wait_for('second')
        assert terminal.process.poll() is None


def test_a_table_in_an_answer_is_aligned(place: Place) -> None:
    with slow(place, 'See:\n\n| name | n |\n|---|---:|\n| a | 1 |\n| long | 200 |') as terminal:
        lines = screen(rest(terminal))
    rows = [line for line in lines if line.split() in (['name', 'n'], ['a', '1'], ['long', '200'])]
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == 3


def test_the_line_names_the_tool_that_it_waits_for_and_leaves_the_terminal_to_those_who_ask(place: Place) -> None:
    with slow(place, code('final_answer(hang(1) + chatty())'), tools='things:hang,things:chatty') as terminal:
        terminal.wait_for('waiting for hang')
        terminal.wait_for('a tool prints\n')
        terminal.wait_for('name? ')
        terminal.type('Ada\n')
        shown = rest(terminal)
    assert 'waitedAda' in shown
    assert '⠋' not in shown.partition('Ada')[0]


def test_a_pipe_and_json_get_no_line(place: Place) -> None:
    model = script(place.folder, 'Fine.')
    done = habilis('run', 'Do it', '-m', model)
    assert '\x1b' not in done.stderr
    assert 'starting' not in done.stderr
    for option in ('--json', '--quiet'):
        with on_terminal('run', 'Do it', '-m', model, option) as terminal:
            assert 'starting' not in rest(terminal)


@pytest.mark.parametrize('variable', ['TERM=dumb', 'HABILIS_STATUS=off'])
def test_a_dumb_terminal_and_the_setting_switch_it_off(place: Place, variable: str) -> None:
    command = ('/usr/bin/env', variable, *COMMAND, 'run', 'Do it', '-m', script(place.folder, 'Fine.'))
    with on_terminal(command=command) as terminal:
        shown = rest(terminal)
    assert 'Fine.' in shown
    assert 'starting' not in shown


def test_no_colours_where_they_are_not_wanted(place: Place) -> None:
    command = ('/usr/bin/env', 'NO_COLOR=1', *COMMAND, 'run', 'Do it', '-m', script(place.folder, 'Fine.'))
    with on_terminal(command=command) as terminal:
        shown = rest(terminal)
    assert '⠋ starting' in shown
    assert '\x1b[2m⠋' not in shown


def test_a_window_that_gets_narrow_has_one_line_only(place: Place) -> None:
    with slow(place, code('final_answer(hang(2))'), tools='things:hang') as terminal:
        terminal.wait_for('waiting for hang')
        fcntl.ioctl(terminal._master, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 12, 0, 0))  # pyright: ignore[reportPrivateUsage]
        shown = terminal.wait_for('waited')
    last = shown.rpartition('waitin')[2]
    assert '…' in last


def test_nothing_that_is_being_written_is_obeyed(server: ProtocolServer) -> None:
    evil = '\x1b]0;pwned\x07\x1b[2J\u202e'
    server.will_answer(streamed(f'I say {evil} and\n```python\n# {evil}\nx = "', f'{evil} more', silent_after=2))
    with on_terminal('run', 'Code', '-m', 'tiny', '--base-url', server.base_url('openai')) as terminal:
        shown = terminal.wait_for(' more')
    for control in ('\x1b]', '\x07', '\x1b[2J', '\u202e'):
        assert control not in shown
    assert '\\x1b]0;pwned' in shown


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_a_tool_that_hangs_and_the_command_that_is_printed_works(place: Place) -> None:
    replies = (code('x = 40'), code('hang()'), code('final_answer(x + 2)'))
    with slow(place, *replies, tools='things:hang') as terminal:
        terminal.wait_for('waiting for hang')
        terminal.type('\x03')
        terminal.wait_for('stopping; press Ctrl-C again to exit at once')
        terminal.wait_for('interrupted after 1 step; resume with: ')
        command = shlex.split(rest(terminal).splitlines()[0])
        assert terminal.process.returncode == 130
    (place.folder / 'things.py').write_text(HANGING.replace('time.sleep(seconds)', 'pass'))
    done = habilis(*command[1:])
    assert (done.returncode, done.stdout) == (0, '42\n'), done.stderr


def test_the_second_ctrl_c_prints_the_command_too() -> None:
    stubborn = 'import time\nfrom habilis.cli.interrupt import run_interruptible\n'
    stubborn += 'import habilis.cli.interrupt as it\nit.GRACE = 1000\n'
    stubborn += 'async def work():\n    print("wor" + "king", flush=True)\n    while True:\n        time.sleep(0.01)\n'
    stubborn += 'run_interruptible(work, last_words=lambda: "resume with: this")\n'
    with on_terminal(command=(sys.executable, '-c', stubborn)) as terminal:
        terminal.wait_for('working')
        terminal.type('\x03')
        terminal.wait_for('habilis: stopping')
        terminal.type('\x03')
        terminal.wait_for('\nhabilis: resume with: this\n')
        assert terminal.exit_code() == 130


# Scripts --------------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from habilis import Agent, ScriptedModel
def shout(event):
    pass
hooks = [shout] if 'hooks' in sys.argv else []
agent = Agent(ScriptedModel(['```python\\nprint(1)\\n```', 'Fine.'], latency=0.5), hooks=hooks, journal='off')
print('answer:', agent.run_sync('Do it').output)
"""


def test_a_script_shows_one_line_that_is_gone_at_the_end(tmp_path: Path) -> None:
    with on_terminal(command=(sys.executable, '-c', SCRIPT)) as terminal:
        shown = rest(terminal)
    assert 'writing' in shown
    assert [line for line in screen(shown) if line] == ['answer: Fine.']


def test_a_script_with_its_own_hooks_shows_nothing_else(tmp_path: Path) -> None:
    with on_terminal(command=(sys.executable, '-c', SCRIPT, 'hooks')) as terminal:
        assert rest(terminal) == 'answer: Fine.\n'
