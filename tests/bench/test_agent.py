"""`habilis bench agent`: that it measures and reports what it says. How fast things are is not tested here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from habilis.bench.agent import loading, steps
from habilis.bench.agent.chat_server import PIECES, chat_server
from habilis.bench.agent.concurrent_runs import Meeting, crowd
from habilis.bench.agent.first_token import first_token
from habilis.bench.agent.peers import LOOP_PEERS, LoopPeer
from habilis.bench.report import Row, report_of
from habilis.bench.table import plain
from habilis.core.errors import AgentError
from tests.cli.process import environment, habilis

ROWS = {
    'step',
    'cell',
    'cell_share',
    'step_smolagents',
    'step_pydantic_ai',
    'runs',
    'runs_seconds',
    'runs_rate',
    'runs_memory',
    'first_token_sdk',
    'first_token_model',
    'first_token',
    'import',
    'import_agent',
    'import_request',
}
TARGETS = {'step': 3.0, 'runs': 200, 'first_token': 20.0}
MAY_BE_MISSING = {'step_smolagents', 'runs_memory'}
"""A peer that is not installed, and a system that does not tell."""

DIFFERENCES = {'first_token_model', 'first_token'}


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def quick() -> subprocess.CompletedProcess[str]:
    return habilis('bench', 'agent', '--quick', '--json', fresh=True)


@pytest.mark.slow
def test_a_quick_run_has_every_number(quick: subprocess.CompletedProcess[str]) -> None:
    assert quick.returncode == 0, quick.stderr
    report: Any = json.loads(quick.stdout)
    rows: dict[str, Any] = {row['key']: row for row in report['rows']}
    assert rows.keys() >= ROWS
    for key in ROWS - DIFFERENCES:
        row = rows[key]
        assert row['value'] > 0 if row['value'] is not None else key in MAY_BE_MISSING and row['note']
    assert {key: row['target']['bound'] for key, row in rows.items() if row['target']} == TARGETS
    assert set(report['missed']) == {key for key, row in rows.items() if row['met'] is False}
    assert (report['quick'], report['peers']) == (True, [])


@pytest.mark.slow
def test_two_hundred_runs_at_once_all_give_their_own_answer(quick: subprocess.CompletedProcess[str]) -> None:
    [row] = [row for row in json.loads(quick.stdout)['rows'] if row['key'] == 'runs']
    assert (row['value'], row['met']) == (200, True)


@pytest.mark.slow
def test_a_run_says_on_stderr_what_it_is_doing(quick: subprocess.CompletedProcess[str]) -> None:
    assert 'habilis: measuring 200 runs at once …\n' in quick.stderr
    assert 'Traceback' not in quick.stderr


@pytest.mark.parametrize(('flags', 'returned'), [((), 0), (('--check',), 1)])
def test_a_missed_target_is_an_error_only_if_asked_for(flags: tuple[str, ...], returned: int) -> None:
    code = (
        'import sys\nfrom habilis.bench.agent import suite\nfrom tests.cli import test_bench\n'
        'async def measure(**_): return test_bench.report(test_bench.MISSED)\n'
        f'suite.measure = measure\nsys.argv = ["habilis", "bench", "agent", *{flags!r}]\n'
        'from habilis.cli.main import main\nmain()'
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=root, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == returned, done.stderr
    assert 'targets missed: sandboxes' in done.stdout


def test_without_peers_there_is_one_table() -> None:
    shown = plain(report_of([Row(key='a', what='a thing', unit='ms', value=1.0)], load=0.0, quick=True))
    assert 'a thing' in shown
    assert 'peer' not in shown


# The parts ------------------------------------------------------------------------------------------------------------


async def test_a_step_takes_time_with_the_agent_and_without() -> None:
    assert await steps.ours() > 0
    assert await steps.cell() > 0


async def test_a_script_that_ends_elsewhere_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(number: int) -> str:
        return f'```python\nfinal_answer({number + 5})\n```'

    monkeypatch.setattr(steps, 'fenced', hasty)
    with pytest.raises(AgentError, match=r'the agent gave 5 after 1 steps \(answer\)'):
        await steps.ours()


@pytest.mark.parametrize('peer', LOOP_PEERS, ids=lambda peer: peer.key)
async def test_a_peer_runs_the_script_or_says_how_to_get_it(peer: LoopPeer) -> None:
    if reason := peer.absent():
        assert reason == f'not installed: pip install {peer.distribution}'
    else:
        assert await peer.per_step() > 0


def test_a_small_crowd_is_counted() -> None:
    found = crowd(3)
    assert (found.count, found.right) == (3, 3)
    assert found.seconds > 0
    assert found.pss is None or found.pss > 0


def test_a_crowd_that_cannot_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / 'python'
    broken.write_text('#!/bin/sh\necho "no memory left" >&2\nexit 1\n', encoding='utf-8')
    broken.chmod(0o755)
    monkeypatch.setattr(sys, 'executable', str(broken))
    with pytest.raises(AgentError, match='3 runs at once: no memory left'):
        crowd(3)


async def test_a_meeting_begins_when_the_last_one_is_there_or_has_given_up() -> None:
    meeting = Meeting(2)
    meeting.arrive(0)
    meeting.arrive(0)
    assert not meeting.begun
    meeting.arrive(1)
    await meeting.wait()
    assert meeting.begun


async def test_the_first_token_is_timed_three_ways() -> None:
    found = await first_token(2)
    assert found.sdk.median > 0
    assert found.sdk.repeats == found.model_adds.repeats == found.agent_adds.repeats == 2


def test_the_server_streams_in_bits_over_a_connection_that_stays() -> None:
    with chat_server() as url, httpx2.Client() as client:
        for _ in range(2):
            answer = client.post(f'{url}/chat/completions', json={'model': 'bench', 'stream': True})
            events = [line.removeprefix('data: ') for line in answer.text.splitlines() if line]
            chunks: list[Any] = [json.loads(event) for event in events[:-1]]
            assert [chunk['choices'][0]['delta'].get('content') for chunk in chunks] == [*PIECES, None]
            assert (chunks[-1]['choices'][0]['finish_reason'], events[-1]) == ('stop', '[DONE]')


def test_statements_are_timed_in_a_process_of_their_own() -> None:
    timed = loading.loading('import json.tool', 1, before='assert "json.tool" not in __import__("sys").modules')
    assert timed.median > 0
    assert 'json.tool' not in sys.modules


def test_what_cannot_be_imported_is_said() -> None:
    with pytest.raises(AgentError, match="a fresh process could not import: ModuleNotFoundError: No module named 'no_"):
        loading.loading('import no_such_package', 1)
