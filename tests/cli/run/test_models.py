"""`habilis run` and models: which one is taken, and what is said when it cannot answer."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli import no_servers
from tests.cli.chat import code, streamed
from tests.cli.process import habilis, on_terminal
from tests.models.local.weights_server import WeightsServer, registry_environment
from tests.models.protocol_server import Answer, ProtocolServer, answer_json, answer_text, free_port
from tests.place import Place


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where no server answers."""
    return habilis(*arguments, program=no_servers.__file__)


def ask(server: ProtocolServer, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a task with a model of the server."""
    url = server.base_url('openai')
    return habilis('run', 'What is 6 times 7?', '--quiet', '--model', 'tiny', '--base-url', url, *options)


# Which one ------------------------------------------------------------------------------------------------------------


def test_a_server_that_streams_solves_a_task(server: ProtocolServer) -> None:
    server.will_answer(streamed('```py', 'thon\nx = 6 ', '* 7\nprint(x)\n```'), streamed(code('final_answer(x)')))
    done = ask(server, '--temperature', '0.5')
    assert (done.returncode, done.stdout, done.stderr) == (0, '42\n', '')
    first, second = (request.json for request in server.requests)
    assert (first['model'], first['temperature'], first['stream']) == ('tiny', 0.5, True)
    assert 'What is 6 times 7?' in str(first['messages'])
    assert '42' in str(second['messages'][-1])


def test_the_model_in_use_and_the_reason_are_printed(server: ProtocolServer, place: Place) -> None:
    server.will_answer(streamed('It is 42.'))
    place.project(f'model = "fast"\n[models.fast]\nmodel = "vllm:tiny"\nbase_url = "{server.base_url("vllm")}"\n')
    done = habilis('run', 'What is it?')
    assert (done.returncode, done.stdout) == (0, 'It is 42.\n')
    assert done.stderr.startswith('habilis: vllm:tiny (it is set in habilis.toml)\n')


def test_a_model_of_a_server_is_small_only_if_it_is_said_to_be(server: ProtocolServer) -> None:
    server.will_answer(streamed('It is 42.'), streamed('It is 42.'))
    assert [ask(server).stdout, ask(server, '--small').stdout] == ['It is 42.\n'] * 2
    general, small = (str(request.json['messages'][-1]) for request in server.requests)
    assert 'Reply with one' not in general
    assert 'Reply with one' in small


def test_an_option_is_stronger_than_the_settings(server: ProtocolServer, place: Place) -> None:
    server.will_answer(streamed('It is 42.'))
    place.environment(HABILIS_MODEL='openai:gpt-5', HABILIS_TEMPERATURE='1')
    assert ask(server, '--temperature', '0').stdout == 'It is 42.\n'
    assert (server.last.json['model'], server.last.json['temperature']) == ('tiny', 0)


def test_the_data_is_named_to_the_model(server: ProtocolServer) -> None:
    server.will_answer(streamed('It is long.'))
    habilis(
        'run', 'How long?', '-q', '-m', 'tiny', '--base-url', server.base_url('openai'), stdin='secret line\n' * 9999
    )
    sent = str(server.last.json['messages'])
    assert 'stdin' in sent
    assert sent.count('secret line') < 100


def test_without_any_model_one_line_says_what_to_do(place: Place) -> None:
    place.environment(HABILIS_CACHE=os.fspath(place.folder / 'empty'))
    done = alone('run', 'What is it?')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert done.stderr.startswith('habilis: no model available: ')
    assert 'OPENAI_API_KEY' in done.stderr


def test_an_embedded_model_that_is_named_but_missing_is_not_downloaded_unasked(place: Place) -> None:
    place.environment(HABILIS_CACHE=os.fspath(place.folder / 'empty'))
    done = habilis('run', 'What is it?', '--model', 'local')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert 'is not downloaded yet (1.1 GB): habilis models install' in done.stderr
    assert not (place.folder / 'empty').exists()


def test_a_missing_embedded_model_of_the_settings_is_reported_like_a_named_one(place: Place) -> None:
    place.environment(HABILIS_CACHE=os.fspath(place.folder / 'empty'), HABILIS_MODEL='local:')
    done = habilis('run', 'What is it?')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert done.stderr.startswith('habilis: qwen2.5-coder-1.5b is not downloaded yet (1.1 GB): habilis models install')
    assert done.stderr.endswith('Use --yes to download it now\n')


def test_a_server_that_is_set_without_a_model_is_not_passed_over(place: Place) -> None:
    place.environment(HABILIS_BASE_URL='http://127.0.0.1:1/v1')
    done = habilis('run', 'What is it?')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert 'base_url is set in the environment: set HABILIS_MODEL or --model to one of its models' in done.stderr


def test_ctrl_c_during_a_download_keeps_what_is_in_and_says_so(tmp_path: Path, place: Place) -> None:
    with WeightsServer() as weights:
        catalogue = weights.catalogue(tmp_path / 'catalogue.toml', sources=('registry',))
        place.environment(
            **registry_environment(weights.url),
            HABILIS_CACHE=os.fspath(place.folder / 'empty'),
            HABILIS_CATALOGUE=os.fspath(catalogue),
        )
        weights.hold_from = 2
        with on_terminal('run', 'What is it?', '--model', 'local:tiny', '--yes') as terminal:
            terminal.wait_for('of 1 MB (5')  # a half, whose rounding depends on the compression
            terminal.type('\x03')
            terminal.wait_for('habilis: the partial download is kept; run the same command to resume it')
            assert terminal.process.wait() == 130


# When it cannot answer ------------------------------------------------------------------------------------------------


def refused(message: str, status: int) -> Answer:
    return answer_json({'error': {'message': message}}, status=status)


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        (refused('Incorrect API key provided', 401), 'refused the key (401): Incorrect API key provided'),
        (refused('The model `tiny` does not exist', 404), "has no model 'tiny' (404)"),
        (refused('temperature is wrong', 400), 'refused the request (400): temperature is wrong'),
        (refused('slow down', 429), 'reports too many requests (429): slow down'),
        (refused('broken', 500), 'is unavailable (500): broken'),
        (answer_text('<html><title>Welcome</title></html>'), 'http://127.0.0.1'),
        (streamed(''), 'gave an empty reply 3 times in a row; try another model'),
        (streamed(' \n', ' '), 'gave an empty reply'),
    ],
    ids=['wrong key', 'unknown model', 'refused', 'too many', 'broken', 'a web page', 'empty', 'blank'],
)
def test_what_a_server_cannot_do_is_one_line(server: ProtocolServer, place: Place, answer: Answer, said: str) -> None:
    place.environment(HABILIS_RETRIES='0')
    server.will_answer(answer)
    done = ask(server)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.startswith('habilis: ')
    assert said in done.stderr
    assert done.stderr.count('\n') == 1


def test_a_dead_server_is_one_line(place: Place) -> None:
    place.environment(HABILIS_RETRIES='0')
    url = f'http://127.0.0.1:{free_port()}/v1'
    done = habilis('run', 'What is it?', '-q', '-m', 'tiny', '--base-url', url)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr == f'habilis: the server at {url} refused the connection: is it running?\n'


def test_retries_are_shown_only_if_asked_for(place: Place) -> None:
    place.environment(HABILIS_RETRIES='1')
    url = f'http://127.0.0.1:{free_port()}/v1'
    for options, count in (((), 0), (('-v',), 1)):
        done = habilis('run', 'What is it?', '-m', 'tiny', '--base-url', url, *options)
        assert done.returncode == 1
        assert done.stderr.count('retrying in') == count
        assert done.stderr.count('is it running?') == 1 + count


def test_a_server_that_says_nothing_is_one_line(server: ProtocolServer, place: Place) -> None:
    place.environment(HABILIS_RETRIES='0', HABILIS_TIMEOUT='0.5')
    server.will_answer(Answer(silent_before=True))
    done = ask(server)
    assert (done.returncode, done.stderr.count('\n')) == (1, 1)
    assert 'did not answer within 0.5 s' in done.stderr


def test_an_error_begins_a_line_of_its_own(server: ProtocolServer, place: Place) -> None:
    place.environment(HABILIS_RETRIES='0')
    server.will_answer(streamed('Let me ', 'think', silent_after=2, cut=True))
    done = habilis('run', 'What is it?', '--model', 'tiny', '--base-url', server.base_url('openai'))
    assert done.returncode == 1
    assert 'Let me think\nhabilis: ' in done.stderr


def test_a_stream_that_ends_too_early_is_no_answer(server: ProtocolServer, place: Place) -> None:
    place.environment(HABILIS_RETRIES='0')
    whole = streamed('Let me ', 'think')
    server.will_answer(replace(whole, chunks=whole.chunks[:2]))
    done = ask(server)
    assert (done.returncode, done.stdout) == (1, '')
    assert 'ended its reply in the middle' in done.stderr


def test_a_server_that_counts_wrongly_prints_nothing(server: ProtocolServer) -> None:
    whole = streamed('It is 42.')
    odd = [(b'"prompt_tokens": 11', b'"prompt_tokens": -5'), (b'"total_tokens": 16', b'"total_tokens": "x"')]
    chunks = whole.chunks
    for right, wrong in odd:
        chunks = tuple(chunk.replace(right, wrong) for chunk in chunks)
    server.will_answer(replace(whole, chunks=chunks))
    done = ask(server)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'It is 42.\n', '')


def test_an_error_in_the_middle_of_a_run_is_the_last_line_and_said_once(server: ProtocolServer, place: Place) -> None:
    place.environment(HABILIS_RETRIES='0')
    server.will_answer(streamed(code('print(1)')), refused('broken', 500))
    url = server.base_url('openai')
    done = habilis('run', 'What is it?', '--model', 'tiny', '--base-url', url)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.splitlines()[-1].startswith('habilis: ')
    assert done.stderr.count('is unavailable') == 1


@pytest.mark.parametrize(
    ('model', 'said'),
    [
        ('openai:gpt-5', 'needs a key: set OPENAI_API_KEY'),
        ('anthropic:claude', 'needs a key: set ANTHROPIC_API_KEY'),
        ('local:weights.gguf', 'cannot read the weights weights.gguf'),
    ],
)
def test_a_model_that_cannot_be_had_is_one_line(model: str, said: str) -> None:
    done = habilis('run', 'What is it?', '--quiet', '--model', model)
    assert (done.returncode, done.stdout) == (1, '')
    assert said in done.stderr
    assert (done.stderr.startswith('habilis: '), done.stderr.count('\n')) == (True, 1)


@pytest.mark.parametrize(
    ('model', 'said'),
    [
        ('gpt-5', "Invalid value for --model: no such model or alias: 'gpt-5'; write openai:gpt-5"),
        ('opnai:gpt-5', "did you mean 'openai'?"),
        ('openai:', "missing model name after 'openai'"),
        ('scripted:', "missing model name after 'scripted'"),
        ('local:no-such-model', "the catalogue has no model 'no-such-model'"),
        ('', "Invalid value for '--model' / '-m': the value is empty"),
    ],
)
@pytest.mark.parametrize('command', [('run', 'What is it?'), ('demo', '1')], ids=['run', 'demo'])
def test_a_name_that_no_model_has_is_wrong_usage(command: tuple[str, ...], model: str, said: str) -> None:
    done = habilis(*command, '--quiet', '--model', model)
    assert (done.returncode, done.stdout) == (2, '')
    assert said in done.stderr


def test_a_name_that_no_model_has_is_no_wrong_usage_if_it_is_set(place: Place) -> None:
    place.environment(HABILIS_MODEL='gpt-5')
    done = habilis('run', 'What is it?', '--quiet')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)


def test_a_key_is_never_shown(server: ProtocolServer, place: Place) -> None:
    place.environment(HABILIS_RETRIES='0', OPENAI_API_KEY='sk-very-secret-0123456789', LOG_LEVEL='debug')
    server.will_answer(refused('Incorrect API key provided: sk-very-secret-0123456789', 401))
    done = habilis('run', 'What is it?', '-m', 'openai:tiny', '--base-url', server.base_url('openai'))
    assert done.returncode == 1
    assert 'very-secret' not in done.stdout + done.stderr


def test_settings_that_are_wrong_are_one_line(place: Place) -> None:
    place.environment(HABILIS_MAX_STEPS='none')
    done = habilis('run', 'What is it?', '--model', 'openai:gpt-5')
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert 'HABILIS_MAX_STEPS' in done.stderr


def test_a_folder_with_a_settings_file_that_is_not_toml_is_one_line(place: Place) -> None:
    written: Path = place.project('model = ')
    done = habilis('run', 'What is it?')
    assert (done.returncode, done.stderr.count('\n')) == (1, 1)
    assert written.name in done.stderr
