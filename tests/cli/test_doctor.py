"""`habilis doctor`: what it finds, and how it says so."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import habilis
from tests.requirements import require_namespaces

Environment = dict[str, str]


@functools.cache
def findings() -> dict[str, Any]:
    """What the doctor says here, asked once."""
    return findings_in(None)


def findings_in(env: Environment | None, *, returns: int = 0) -> dict[str, Any]:
    """What the doctor says to machines, by name."""
    done = habilis('doctor', '--json', env=env)
    report = json.loads(done.stdout)
    assert done.returncode == returns
    assert report['ok'] is (returns == 0)
    return {finding['name']: finding for finding in report['findings']}


def test_a_working_installation_is_reported_line_by_line() -> None:
    done = habilis('doctor')
    assert (done.returncode, done.stderr) == (0, '')
    lines = done.stdout.splitlines()
    for start in ('✓ Python ', '✓ platform ', '✓ wasmtime ', '✓ component ', '✓ cache ', '✓ compiled code '):
        assert any(line.startswith(start) for line in lines), start
    assert any(line.startswith('✓ backend wasm ') and 'WebAssembly' in line for line in lines)
    assert lines[-1] == 'The sandbox works.'
    assert all(line[0] in '✓–' for line in lines[:-2])


def test_the_self_test_is_real_and_says_how_long_creation_took() -> None:
    found = findings()['self-test']
    assert found['status'] == 'ok'
    assert 'cell with a tool call' in found['detail']
    assert found['values']['create_ms'] > 0
    assert found['values']['loop_ms'] >= 200


def test_process_has_run_what_people_use_it_for() -> None:
    require_namespaces()
    found = findings()['backend process']
    assert found['status'] == 'ok'
    assert found['detail'].startswith('ran a cell, a native package (pydantic_core), a command; a process with ')


def test_the_json_has_what_a_machine_needs() -> None:
    found = findings()
    assert found['component']['values']['source'] in ('built', 'bundled')
    assert found['cache']['values'].keys() == {'folder', 'bytes', 'writable', 'private'}
    assert found['backend wasm']['values']['default'] is True
    assert Path(found['compiled code']['values']['path']).is_file()


def test_what_is_optional_and_missing_says_how_to_get_it() -> None:
    for finding in findings().values():
        if finding['status'] == 'absent':
            assert finding['advice']


def test_a_backend_without_an_engine_an_extra_or_a_key_is_not_ticked_and_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / 'modal.py').write_text('raise ImportError')
    env = {'DOCKER_HOST': f'unix://{tmp_path}/none', 'PYTHONPATH': str(tmp_path), 'E2B_API_KEY': ''}
    found = findings_in(env)
    for name, detail, advice in (
        ('docker', 'not usable', 'start it (sudo systemctl start docker), or set DOCKER_HOST'),
        ('modal', 'not installed', 'the SDK of Modal is missing: pip install "habilis[modal]"'),
        ('e2b', 'not set up', 'E2B needs a key: set E2B_API_KEY, or pass key=…'),
    ):
        finding = found[f'backend {name}']
        assert (finding['status'], finding['detail']) == ('absent', detail)
        assert finding['advice'].endswith(advice)


# What can be wrong ----------------------------------------------------------------------------------------------------


def test_a_cache_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    in_the_way = tmp_path / 'file'
    in_the_way.touch()
    found = findings_in({'HABILIS_CACHE': str(in_the_way)}, returns=1)
    assert found['cache']['status'] == 'bad'
    assert found['cache']['advice'] == 'set HABILIS_CACHE to a writable folder'
    assert found['self-test']['status'] == 'bad'


def test_a_cache_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / 'wasm'
    folder.mkdir()
    folder.chmod(0o777)
    env = {'HABILIS_CACHE': str(tmp_path)}
    found = findings_in(env, returns=1)
    assert found['cache']['values']['private'] is False
    assert found['cache']['advice'] == f'code is loaded from it; run: chmod 700 {folder}'
    done = habilis('doctor', env=env)
    assert done.returncode == 1
    assert done.stdout.endswith('The sandbox does not work. Broken: cache, self-test.\n')
    assert 'Traceback' not in done.stdout + done.stderr


@pytest.mark.parametrize('value', ['no_such_module:Backend', 'json:no_such_class', 'json:dumps'])
def test_a_broken_backend_of_somebody_else_is_not_our_trouble(tmp_path: Path, value: str) -> None:
    package = tmp_path / 'somebody-1.0.dist-info'
    package.mkdir()
    (package / 'METADATA').write_text('Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n')
    (package / 'entry_points.txt').write_text(f'[habilis.sandboxes]\nbroken = {value}\n')
    found = findings_in({'PYTHONPATH': str(tmp_path)})['backend broken']
    assert found['status'] == 'absent'
    assert found['detail'].startswith('not usable: ')
