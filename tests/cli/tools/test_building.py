"""`habilis tools build` and `compose`: recorded, and resumed after Ctrl-C and `kill -9`."""

import signal
import subprocess
from pathlib import Path

import pytest

from habilis.forge.library.library import Library
from tests.cli.chat import script, streamed
from tests.cli.process import COMMAND, PATIENCE, environment, habilis
from tests.cli.run.conftest import place, server
from tests.cli.tools.conftest import Tools, data
from tests.forge.build import test_composition as composition
from tests.forge.build.test_forge import CODE, SPEC, TESTS
from tests.models.protocol_server import Answer, ProtocolServer, wait_for_requests

__all__ = ['place', 'server']

ONE = ('--candidates', '1')
MODEL = 'openai-compatible:tiny'


def test_a_build_that_failed_is_resumed(tools: Tools, library: Library, tmp_path: Path) -> None:
    failed = tools('build', 'Turn a text around', *ONE, '--use', '--model', script(tmp_path, SPEC, TESTS))
    assert (failed.returncode, failed.stdout) == (1, '')
    [run] = data(habilis('runs', 'list', '--json'))
    assert f'habilis tools build --resume {run["run"]} --use --model scripted:' in failed.stderr.splitlines()[-2], (
        failed.stderr
    )
    assert "build_tool(request='Turn a text around')" in habilis('runs', 'list').stdout
    command = f'habilis tools build --resume {run["run"]}'
    assert f'resume with: {command}\n' in habilis('runs', 'show', 'last').stdout
    assert f'resume it with: {command}\n' in habilis('runs', 'resume', 'last').stderr
    rest = script(tmp_path, CODE, "reverse_string('ab')", 'It is ba.', name='rest')
    done = tools('build', '--resume', run['run'][:8], *ONE, '--use', '--model', rest)
    assert (done.returncode, done.stdout) == (0, 'It is ba.\n'), done.stderr
    assert library.manifest('reverse_string').request == 'Turn a text around'


def test_only_a_build_is_resumed(tools: Tools, tmp_path: Path) -> None:
    habilis('run', 'Do it', '--model', script(tmp_path, 'x'))
    other = tools('build', '--resume', 'last')
    assert other.returncode == 1
    assert 'is not the build of a tool; resume it with: habilis runs resume run-' in other.stderr
    assert tools('build', '--resume', 'nope').returncode == 1
    assert tools('build').returncode == tools('build', 'a', '--resume', 'b').returncode == 2


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_is_resumed(
    tools: Tools, library: Library, server: ProtocolServer, tmp_path: Path, how: signal.Signals
) -> None:
    server.will_answer(streamed(SPEC), streamed(TESTS), Answer(silent_before=True))
    env = environment({'HABILIS_BASE_URL': server.base_url('openai')})
    command = [*COMMAND, 'tools', 'build', 'Turn a text around', *ONE, '--library', str(library.folder), '-m', MODEL]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        list(wait_for_requests(server, 3, PATIENCE))
        process.send_signal(how)
        _, said = process.communicate(timeout=PATIENCE)
    [run] = data(habilis('runs', 'list', '--json'))
    way_on = f'habilis tools build --resume {run["run"]} --model {MODEL}'
    assert way_on in said.splitlines()[1 if how == signal.SIGKILL else -1]
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    done = tools('build', '--resume', 'last', *ONE, '--json', '--model', script(tmp_path, CODE))
    assert data(done)['name'] == 'reverse_string', done.stderr
    assert library.names() == ['double', 'fourfold', 'reverse_string']


def test_compose_builds_a_tool_of_others(tools: Tools, library: Library, tmp_path: Path) -> None:
    model = script(tmp_path, composition.SPEC, composition.TESTS, composition.CODE)
    done = tools('compose', 'double', 'fourfold', '--name', 'eightfold', *ONE, '--model', model)
    assert (done.returncode, done.stdout) == (0, 'eightfold\n'), done.stderr
    assert library.manifest('eightfold').uses == {'double': 1, 'fourfold': 1}
    assert tools('run', 'eightfold', '3').stdout == '24\n'
    one = tools('compose', 'double', '--name', 'more', '--model', model)
    assert (one.returncode, one.stderr.splitlines()[-1]) == (1, 'habilis: name at least two tools to compose')
