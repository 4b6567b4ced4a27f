"""`habilis run` in front of a person: live words, questions, Ctrl-C."""

import subprocess
import sys

import pytest

from tests.cli.chat import code, script, streamed
from tests.cli.process import on_terminal
from tests.models.protocol_server import ProtocolServer
from tests.place import Place

APPROVE = """
import asyncio
from habilis.cli.terminal_user import TerminalUser
from habilis.tools import ApprovalRequest
request = ApprovalRequest(
    id=1, tool='write_file', arguments={'path': 'a.txt', 'text': 'x' * 500}, question='May write_file be called?',
    diff='--- a.txt\\n+++ a.txt\\n@@ -1 +1 @@\\n-old\\x1b[2J\\n+new',
)
print('said', asyncio.run(TerminalUser().approve(request)).to_json())
"""


def test_the_words_of_the_model_appear_before_it_has_ended(server: ProtocolServer) -> None:
    server.will_answer(streamed('Let me ', 'think about ', 'this', ' and that', silent_after=3))
    with on_terminal('run', 'Think', '-m', 'tiny', '--base-url', server.base_url('openai')) as terminal:
        terminal.wait_for('think about ')
        assert terminal.process.poll() is None
        terminal.type('\x03')
        terminal.wait_for('\nhabilis: interrupted after 0 steps; resume with: habilis runs resume run-')
        assert terminal.exit_code() == 130
    assert server.wait_until_hung_up()


def test_a_second_ctrl_c_ends_it_at_once(place: Place) -> None:
    stubborn = 'import signal, asyncio, time\nfrom habilis.cli.interrupt import run_interruptible\n'
    stubborn += 'async def work():\n    print("wor" + "king", flush=True)\n    while True:\n        time.sleep(0.01)\n'
    stubborn += 'run_interruptible(work)\n'
    with on_terminal(command=(sys.executable, '-c', stubborn)) as terminal:
        terminal.wait_for('working')
        terminal.type('\x03')
        with pytest.raises(subprocess.TimeoutExpired):
            terminal.process.wait(timeout=1)
        terminal.type('\x03')
        assert terminal.exit_code() == 130


def test_a_question_is_asked_and_the_run_continues_with_the_answer(place: Place) -> None:
    model = script(place.folder, code("ask_user('Which colour?')"), code("final_answer('painted')"))
    with on_terminal('run', 'Paint it', '--model', model) as terminal:
        terminal.wait_for('Which colour?\n> ')
        terminal.type('blue\n')
        terminal.wait_for('done')
        terminal.wait_for('painted\n')
        assert terminal.exit_code() == 0


def test_the_answer_of_the_person_reaches_the_model(server: ProtocolServer) -> None:
    server.will_answer(streamed(code("ask_user('Which colour?')")), streamed('Done.'))
    with on_terminal('run', 'Paint it', '-m', 'tiny', '--base-url', server.base_url('openai')) as terminal:
        terminal.wait_for('Which colour?\n> ')
        terminal.type('ultramarine\n')
        terminal.wait_for('Done.')
        assert terminal.exit_code() == 0
    assert server.last.json['messages'][-1]['content'] == 'ultramarine'


def test_a_question_that_the_person_will_not_answer_ends_the_run(place: Place) -> None:
    model = script(place.folder, code("ask_user('Which colour?')"), 'never said')
    with on_terminal('run', 'Paint it', '--model', model) as terminal:
        terminal.wait_for('> ')
        terminal.type('\x04')
        shown = terminal.wait_for('\nhabilis: answer with: habilis runs resume run-')
        assert 'Which colour?' not in shown
        assert terminal.exit_code() == 4


def test_ctrl_c_at_a_question_stops(place: Place) -> None:
    model = script(place.folder, code("ask_user('Which colour?')"), 'never said')
    with on_terminal('run', 'Paint it', '--model', model) as terminal:
        terminal.wait_for('Which colour?\n> ')
        terminal.type('\x03')
        terminal.wait_for('habilis: interrupted after 1 step; resume with: habilis runs resume run-')
        assert terminal.exit_code() == 130


def test_without_a_task_the_message_says_how_to_give_one() -> None:
    with on_terminal('run') as terminal:
        terminal.wait_for('no task given; for example: habilis run "')
        assert terminal.exit_code() == 2


def test_a_download_is_asked_for_first(place: Place) -> None:
    place.environment(HABILIS_CACHE=str(place.folder / 'empty'))
    with on_terminal('run', 'What is it?', '--model', 'local') as terminal:
        terminal.wait_for('(1.1 GB')
        terminal.wait_for('[y/N] ')
        terminal.type('n\n')
        terminal.wait_for('was not installed')
        assert terminal.exit_code() == 1


def test_what_an_answer_holds_is_not_obeyed_by_the_terminal(place: Place) -> None:
    model = script(place.folder, code(r"final_answer('a\x1b[2Jb')"))
    with on_terminal('run', 'Clear it', '--quiet', '--model', model) as terminal:
        terminal.wait_for('a\\x1b[2Jb')
        assert terminal.exit_code() == 0


@pytest.mark.parametrize(
    ('typed', 'said'),
    [
        ('y\n', 'True'),
        ('what?\nYES\n', 'True'),
        ('\n', 'False'),
        ('no, not today\n', "{'approved': False, 'reason': 'not today'}"),
        ('cell 20\n', "{'approved': True, 'scope': 'cell', 'calls': 20}"),
        ('always\n', "{'approved': True, 'scope': 'always'}"),
        ('always src/\n', "{'approved': True, 'scope': 'always', 'prefix': 'src/'}"),
        ('session\n', "{'approved': True, 'scope': 'session'}"),
        ('stop, enough\n', "{'approved': False, 'reason': 'enough', 'scope': 'cell'}"),
    ],
)
def test_an_approval_shows_the_diff_and_takes_these_answers(typed: str, said: str) -> None:
    with on_terminal(command=(sys.executable, '-c', APPROVE)) as terminal:
        shown = terminal.wait_for('May write_file be called? [y/N/cell/always/session/stop] ')
        assert "path='a.txt'" in shown
        assert '\033[31m - \033[0m\033[31mold\\x1b[2J\033[0m' in shown
        assert '\033[32m + \033[0m' in shown
        terminal.type(typed)
        terminal.wait_for(f'said {said}')


def test_all_of_a_long_diff_is_shown_on_demand() -> None:
    long = APPROVE.replace('@@ -1 +1 @@\\n-old\\x1b[2J\\n+new', '@@ -0,0 +1,99 @@\\n' + '+line\\n' * 99)
    with on_terminal(command=(sys.executable, '-c', long)) as terminal:
        assert '99' not in terminal.wait_for('… 40 more lines: answer diff').partition('−0')[2]
        terminal.type('diff\n')
        terminal.wait_for_row('99 + line')
        terminal.type('y\n')
        terminal.wait_for('said True')


def test_an_approval_without_a_person_is_denied() -> None:
    command = [sys.executable, '-c', APPROVE]
    done = subprocess.run(command, input='y\n', capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ('said False\n', '')


SHOP = """
from habilis import tool

@tool(needs_approval=True)
def order(item: int) -> None:
    with open('orders', 'a') as file:
        file.write(f'{item} ')
"""


def test_the_writes_of_a_loop_are_counted_and_stopped(place: Place) -> None:
    (place.folder / 'shop.py').write_text(SHOP)
    loop = 'for n in range(9):\n    try:\n        order(n)\n    except Exception as error:\n        print(error)\n'
    model = script(place.folder, code(f'{loop}final_answer(1)'))
    with on_terminal('run', 'Buy', '--model', model, '--tools', 'shop:order') as terminal:
        terminal.wait_for('order(item=0)\nMay order be called? [y/N/cell/always/session/stop] ')
        terminal.type('cell 3\n')
        terminal.wait_for('approved: order: call 3 of 3 in this cell')
        terminal.wait_for('order was approved 3 times in this cell\nMay order be called? ')
        terminal.type('stop, enough\n')
        terminal.wait_for('done')
        assert terminal.exit_code() == 0
    assert (place.folder / 'orders').read_text() == '0 1 2 '
