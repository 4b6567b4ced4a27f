"""Runs that programs have made: approved, answered and gone on with by name of their agent or flow."""

import json
import subprocess
import sys

import pytest

from tests.cli.process import environment
from tests.cli.runs.making import FLOW, PROGRAM, listed, make, runs
from tests.place import Place


@pytest.fixture
def sending(place: Place) -> Place:
    """A run of an agent that waits for an approval."""
    return ran(place, 'program', PROGRAM, 'approval\n')


@pytest.fixture
def publishing(place: Place) -> Place:
    """A run of a flow that waits for one."""
    return ran(place, 'paper', FLOW, 'waits\n')


def ran(place: Place, name: str, text: str, says: str) -> Place:
    (place.folder / f'{name}.py').write_text(text)
    command = [sys.executable, f'{name}.py']
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert (done.stdout, done.stderr) == (says, '')
    return place


def sent(place: Place) -> list[str]:
    file = place.folder / 'sent.txt'
    return file.read_text().splitlines() if file.exists() else []


# Agents ---------------------------------------------------------------------------------------------------------------


def test_an_approved_call_is_made_once_and_the_run_continues(sending: Place) -> None:
    assert listed()[0]['status'] == 'waiting'
    done = runs('approve', 'run-send', '--app', 'program:agent')
    assert (done.returncode, done.stdout) == (0, 'Ada\n'), done.stderr
    assert "send('to ' + name)" in done.stderr
    assert sent(sending) == ['to Ada']
    (call,) = json.loads(runs('calls', 'run-send', '--json').stdout)
    assert (call['decision'], call['ok'], call['result']) == ('approved', True, "'sent to Ada'")


def test_a_denied_call_is_not_made_and_raises_in_the_code(sending: Place) -> None:
    done = runs('deny', 'run-send', '--reason', 'not today', '--app', 'program:agent')
    assert (done.returncode, done.stdout) == (0, 'Ada\n')
    assert sent(sending) == []
    assert 'ToolDenied' in runs('show', 'run-send').stdout


def test_an_approval_can_be_given_without_going_on(sending: Place) -> None:
    done = runs('approve', 'run-send', '--no-resume')
    assert (done.returncode, done.stdout) == (0, '')
    assert done.stderr == ('habilis: answer recorded; resume with: habilis runs resume run-send --app program:agent\n')
    assert sent(sending) == []
    assert runs('resume', 'run-send', '--app', 'program:agent', '-q').stdout == 'Ada\n'
    assert sent(sending) == ['to Ada']


def test_going_on_without_an_approval_still_waits_for_it(sending: Place) -> None:
    done = runs('resume', 'run-send', '--app', 'program:agent', '--quiet')
    assert (done.returncode, done.stdout) == (4, '')
    assert done.stderr.splitlines() == [
        'habilis: send needs approval: May send be called?',
        "  send(text='to Ada')",
        '  called by this code:',
        "    print(send('to ' + name))",
        'habilis: approve with: habilis runs approve run-send --app program:agent',
        'habilis: or deny with: habilis runs deny run-send --app program:agent',
    ]
    assert sent(sending) == []


def test_a_run_that_needs_deps_is_resumed_in_python_and_the_command_says_so(place: Place) -> None:
    program = PROGRAM.replace("run_id='run-send'", "run_id='run-send', deps={'key': 'hidden'}")
    ran(place, 'program', program, 'approval\n')
    for app in ((), ('--app', 'program:agent')):
        done = runs('resume', 'run-send', *app)
        assert (done.returncode, done.stdout) == (1, '')
        assert done.stderr == (
            'habilis: run-send needs deps of type dict, which are not recorded, and which a command cannot pass; '
            "resume it in Python: await agent.resume('run-send', deps=…)\n"
        )
    assert 'hidden' not in runs('show', 'run-send').stdout


def test_without_the_program_it_is_said_how_to_name_it_and_nothing_is_recorded(sending: Place) -> None:
    for command in ('approve', 'resume'):
        done = runs(command, 'run-send')
        assert (done.returncode, done.stdout) == (1, '')
        assert f'habilis runs {command} run-send --app program:agent' in done.stderr
        assert done.stderr.count('\n') == 1
    assert "await agent.resume('run-send')" in done.stderr
    assert listed()[0]['status'] == 'waiting'
    assert runs('approve', 'run-send', '--app', 'program:agent').stdout == 'Ada\n'


@pytest.mark.parametrize(
    ('app', 'complaint'),
    [
        ('program', 'is not MODULE:NAME'),
        (':agent', 'is not MODULE:NAME'),
        ('missing:agent', "No module named 'missing'"),
        ('program:nothing', "has no attribute 'nothing'"),
        ('program:send', 'not an Agent, a Flow or a Workflow'),
        ('broken:agent', 'SyntaxError'),
    ],
)
def test_a_program_that_cannot_be_had_is_wrong_usage(sending: Place, app: str, complaint: str) -> None:
    (sending.folder / 'broken.py').write_text('def')
    done = runs('resume', 'run-send', '--app', app)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in ' '.join(done.stderr.split())
    assert 'Traceback' not in done.stderr


@pytest.mark.parametrize('answer', ['5', '{"value": 1}'])
def test_an_approval_wants_a_yes_or_a_no(sending: Place, answer: str) -> None:
    done = runs('answer', 'run-send', answer)
    assert done.returncode == 1
    assert 'needs an approval' in done.stderr


def test_words_that_are_no_approval_are_wrong_usage(sending: Place) -> None:
    done = runs('answer', 'run-send', 'perhaps')
    assert (done.returncode, done.stdout) == (2, '')
    assert 'always' in done.stderr


@pytest.mark.parametrize('answer', ['{again', '[1', '"x'])
def test_an_answer_that_is_half_json_is_wrong_usage(sending: Place, answer: str) -> None:
    done = runs('answer', 'run-send', answer)
    assert (done.returncode, done.stdout) == (2, '')
    assert 'is not valid JSON' in done.stderr


# Flows ----------------------------------------------------------------------------------------------------------------


def test_a_flow_continues_after_its_approval(publishing: Place) -> None:
    done = runs('approve', 'run-flow', '--app', 'paper:publish')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'NEWS!\n', 'habilis: fetch#2 done\n')
    assert (publishing.folder / 'fetched.txt').read_text() == 'news\nNEWS!\n'
    again = runs('resume', 'run-flow', '--app', 'paper:publish')
    assert (again.stdout, again.stderr) == ('NEWS!\n', '')
    assert [(run['status'], run['kind']) for run in listed()] == [('done', 'flow')]


def test_a_flow_that_continues_quietly_says_nothing_of_its_steps(publishing: Place) -> None:
    done = runs('approve', 'run-flow', '--app', 'paper:publish', '--quiet')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'NEWS!\n', '')


def test_a_flow_gives_json_where_it_is_wanted(publishing: Place) -> None:
    waits = runs('resume', 'run-flow', '--app', 'paper:publish', '--json')
    assert waits.returncode == 4
    assert json.loads(waits.stdout) == {'output': None, 'ended': 'approval', 'run_id': 'run-flow'}
    done = runs('approve', 'run-flow', '--app', 'paper:publish', '--json')
    assert done.returncode == 0
    assert json.loads(done.stdout) == {'output': 'NEWS!', 'ended': 'answer', 'run_id': 'run-flow'}


@pytest.mark.parametrize(
    'option', [('--answer', 'yes'), ('--model', 'x:y'), ('--workspace', '.'), ('--max-steps', '3')]
)
def test_what_only_an_agent_could_use_is_refused_for_a_flow(publishing: Place, option: tuple[str, str]) -> None:
    done = runs('resume', 'run-flow', '--app', 'paper:publish', *option)
    assert (done.returncode, done.stdout) == (2, '')
    assert 'run-flow is the run of a flow' in ' '.join(done.stderr.split())
    assert listed()[0]['status'] == 'waiting'


def test_a_flow_that_fails_is_reported_in_a_line(publishing: Place) -> None:
    done = runs('deny', 'run-flow', '--app', 'paper:publish')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert done.stderr.startswith('habilis: run-flow failed: ValueError: not published')
    assert listed()[0]['status'] == 'failed'


def test_a_flow_that_still_waits_says_so(publishing: Place) -> None:
    done = runs('resume', 'run-flow', '--app', 'paper:publish')
    assert (done.returncode, done.stdout) == (4, '')
    assert 'Publish NEWS?' in done.stderr
    assert 'habilis runs show run-flow' in done.stderr


def test_a_flow_needs_its_program(publishing: Place) -> None:
    done = runs('resume', 'run-flow')
    assert (done.returncode, done.stdout) == (1, '')
    assert '--app paper:publish' in done.stderr
    assert "await publish.resume('run-flow')" in done.stderr


def test_an_agent_is_no_flow(publishing: Place) -> None:
    (publishing.folder / 'program.py').write_text(PROGRAM)
    done = runs('resume', 'run-flow', '--app', 'program:agent')
    assert done.returncode == 2
    assert 'is the run of a flow, and program:agent is not a flow' in ' '.join(done.stderr.split())
    done = runs('resume', make(publishing), '--app', 'paper:publish')
    assert done.returncode == 2
    assert 'is the run of an agent, and paper:publish is not an agent' in ' '.join(done.stderr.split())


def test_a_flow_is_forked_by_the_path_of_a_step(publishing: Place) -> None:
    runs('approve', 'run-flow', '--app', 'paper:publish')
    done = runs('fork', 'run-flow', '--at', 'publish#1/fetch#2', '--app', 'paper:publish')
    assert (done.returncode, done.stdout) == (0, 'NEWS!\n')
    assert (publishing.folder / 'fetched.txt').read_text() == 'news\nNEWS!\nNEWS!\n'
    refused = runs('fork', 'run-flow', '--at', '2')
    assert (refused.returncode, 'give the path of a step' in refused.stderr) == (1, True)
    count = len(listed())
    needs = runs('fork', 'run-flow', '--at', 'publish#1/fetch#2').stderr
    assert "habilis runs fork run-flow --at 'publish#1/fetch#2' --app paper:publish\n" in needs
    assert len(listed()) == count
    unknown = runs('fork', 'run-flow', '--at', 'publish#1/nothing#1')
    assert (unknown.returncode, "has no step 'publish#1/nothing#1'" in unknown.stderr) == (1, True)
