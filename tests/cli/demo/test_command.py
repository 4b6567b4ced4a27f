"""`habilis demo`: three tasks that check themselves."""

import os
import subprocess
import sys

import pytest

from habilis.cli.demo.tasks import DEMOS, NOTE_TEXT
from habilis.models.discovery import DEFAULTS
from tests.cli.chat import code, script, streamed
from tests.cli.process import environment, habilis
from tests.cli.run.test_models import alone
from tests.models.protocol_server import ProtocolServer
from tests.place import Place

PLAN = '1. Find them.\n2. Write them.\n3. Sum them.'


def test_all_three_run_for_real_from_a_script_and_say_so() -> None:
    done = habilis('demo', '--scripted')
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if 'right:' in line] == [
        line for line in lines if line.startswith('[SCRIPTED] Demo ') and 'right:' in line
    ]
    for number, answer in ((1, '338350'), (2, NOTE_TEXT), (3, '129')):
        assert f'[SCRIPTED] Demo {number}: correct: {answer} (' in done.stdout
    assert 'copy_file' in done.stderr
    assert 'planner' in done.stderr
    assert 'implementer' in done.stderr


@pytest.mark.parametrize('demo', DEMOS, ids=lambda demo: demo.title)
def test_one_can_be_chosen(demo: object) -> None:
    number = str(DEMOS.index(demo) + 1)  # pyright: ignore[reportArgumentType]
    done = habilis('demo', number, '--scripted', '--quiet')
    assert (done.returncode, done.stderr) == (0, '')
    assert [line[:17] for line in done.stdout.splitlines() if 'Demo' in line] == [f'[SCRIPTED] Demo {number}'] * 2


def test_a_real_server_plays_all_parts(server: ProtocolServer, place: Place) -> None:
    place.environment(VLLM_BASE_URL=server.base_url('vllm'))
    replies = [*DEMOS[0].scripted, *DEMOS[1].scripted, PLAN, *DEMOS[2].scripted]
    server.will_answer(*map(streamed, replies))
    done = alone('demo', '--model', 'vllm:tiny')
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'SCRIPTED' not in done.stdout + done.stderr
    assert done.stderr.startswith('habilis: vllm:tiny (--model)\n')
    assert 'vllm:tiny is also the planner of demo 3' in done.stderr
    assert PLAN.splitlines()[0] in server.last.json['messages'][-1]['content']


def test_a_second_model_that_is_found_makes_the_plan(server: ProtocolServer, place: Place) -> None:
    place.project('model = "vllm:tiny"\n')
    url = server.base_url('openai')
    place.environment(OPENAI_API_KEY='sk-of-the-test', OPENAI_BASE_URL=url, VLLM_BASE_URL=url)
    server.will_answer(streamed(PLAN), streamed(*DEMOS[2].scripted))
    done = alone('demo', '3')
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.startswith('habilis: vllm:tiny (it is set in habilis.toml)\n')
    assert f'habilis: planner: openai:{DEFAULTS["openai"]} (OPENAI_API_KEY is set)\n' in done.stderr
    assert [request.json['model'] for request in server.requests] == [DEFAULTS['openai'], 'tiny']


def test_two_models_can_be_named(server: ProtocolServer, place: Place) -> None:
    place.environment(VLLM_BASE_URL=server.base_url('vllm'))
    place.project('[models]\nthinker = "vllm:wise"\nworker = "vllm:busy"\n')
    server.will_answer(streamed(PLAN), streamed(*DEMOS[2].scripted))
    done = alone('demo', '3', '--model', 'worker', '--planner', 'thinker')
    assert done.returncode == 0, done.stdout + done.stderr
    assert [request.json['model'] for request in server.requests] == ['wise', 'busy']


@pytest.mark.parametrize(
    ('number', 'replies', 'complaint'),
    [
        ('1', [code('final_answer(sum([5]))')], 'Demo 1: incorrect: 5; expected 338350'),
        ('1', [code('x = [1]')] * 9, 'Demo 1: incorrect: None; no answer (max_steps)'),
        ('2', [code(f'final_answer({NOTE_TEXT!r})')], 'the file note.txt is not in the second sandbox'),
        ('2', [*DEMOS[1].scripted[:1], code(f'final_answer({NOTE_TEXT!r})')], 'was not read in the second sandbox'),
        ('3', [PLAN, code('final_answer(sum([129]))')], 'the file primes.txt does not hold the primes below 30'),
        ('3', [PLAN, DEMOS[2].scripted[0].replace('sum', 'max')], 'incorrect: 29; expected 129'),
    ],
)
def test_a_wrong_result_is_found_out(
    server: ProtocolServer, number: str, replies: list[str], complaint: str, place: Place
) -> None:
    place.environment(VLLM_BASE_URL=server.base_url('vllm'), HABILIS_MODEL='vllm:tiny')
    server.will_answer(*map(streamed, replies))
    planner = ('--planner', 'vllm:tiny') if number == '3' else ()  # not the embedded one, where that is installed
    done = alone('demo', number, '--quiet', *planner)
    assert done.returncode == 1
    assert complaint in done.stdout
    assert ' correct:' not in done.stdout


def test_without_any_model_the_script_is_offered_and_not_taken(place: Place) -> None:
    place.environment(HABILIS_CACHE=os.fspath(place.folder / 'empty'))
    done = alone('demo')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert done.stderr.startswith('habilis: no model available: ')
    assert '`habilis demo --scripted` needs no model' in done.stderr


def test_a_script_that_is_named_as_a_model_is_labelled(place: Place) -> None:
    done = habilis('demo', '1', '--model', script(place.folder, *DEMOS[0].scripted))
    assert done.returncode == 0
    assert 'SCRIPTED' in done.stderr


def test_a_dead_server_is_one_line(place: Place) -> None:
    place.environment(HABILIS_RETRIES='0')
    place.project('model = "tiny"\nbase_url = "http://127.0.0.1:9/v1"\n')
    done = alone('demo', '1', '--quiet')
    assert done.returncode == 1
    assert done.stderr == 'habilis: the server at http://127.0.0.1:9/v1 refused the connection: is it running?\n'


@pytest.mark.parametrize(
    ('arguments', 'complaint'),
    [
        (('4',), "'4' is not one of"),
        (('one',), "'one' is not one of"),
        (('--scripted', '--model', 'openai:gpt-5'), 'leave out --model and --planner'),
        (('1', '2'), 'unexpected extra argument'),
    ],
)
def test_wrong_usage_is_said_in_words(arguments: tuple[str, ...], complaint: str) -> None:
    done = habilis('demo', *arguments)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in done.stderr


def test_help_names_the_demos() -> None:
    done = habilis('demo', '--help')
    assert done.returncode == 0
    for demo in DEMOS:
        assert f'{demo.number} {demo.title}' in done.stdout


def test_choosing_what_to_play_loads_no_model() -> None:
    command = [sys.executable, '-X', 'importtime', '-m', 'habilis', 'demo', '--help']
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert 'habilis.models' not in done.stderr
