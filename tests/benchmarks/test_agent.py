"""Benchmarks of the agent. The speed itself is not tested here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from benchmarks.agent import steps
from benchmarks.agent.chat_server import CHUNKS, chat_server
from benchmarks.agent.concurrent_runs import Barrier, concurrent_runs
from benchmarks.agent.first_token import first_token
from benchmarks.agent.import_time import import_time
from benchmarks.agent.peers import AGENT_PEERS, AgentPeer
from benchmarks.report import Row, make_report
from benchmarks.table import format_report
from habilis.core.errors import AgentError
from tests.benchmarks.process import benchmarks

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
"""A peer may not be installed, and memory is measured only on Linux."""

DIFFERENCES = {'first_token_model', 'first_token'}


# The suite ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def quick() -> subprocess.CompletedProcess[str]:
    return benchmarks('agent', '--quick', '--json')


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
def test_two_hundred_concurrent_runs_all_return_their_own_answer(quick: subprocess.CompletedProcess[str]) -> None:
    [row] = [row for row in json.loads(quick.stdout)['rows'] if row['key'] == 'runs']
    assert (row['value'], row['met']) == (200, True)


@pytest.mark.slow
def test_a_run_says_on_stderr_what_it_is_doing(quick: subprocess.CompletedProcess[str]) -> None:
    assert 'benchmarks: measuring 200 concurrent runs …\n' in quick.stderr
    assert 'Traceback' not in quick.stderr


def test_without_peers_there_is_one_table() -> None:
    shown = format_report(make_report([Row(key='a', label='a thing', unit='ms', value=1.0)], load=0.0, quick=True))
    assert 'a thing' in shown
    assert 'peer' not in shown


# The parts ------------------------------------------------------------------------------------------------------------


async def test_a_step_takes_time_with_the_agent_and_without() -> None:
    assert await steps.agent_step() > 0
    assert await steps.sandbox_step() > 0


async def test_a_run_with_a_wrong_answer_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(number: int) -> str:
        return f'```python\nfinal_answer({number + 5})\n```'

    monkeypatch.setattr(steps, 'reply', hasty)
    with pytest.raises(AgentError, match=r'the agent returned 5 after 1 steps \(answer\)'):
        await steps.agent_step()


@pytest.mark.parametrize('peer', AGENT_PEERS, ids=lambda peer: peer.key)
async def test_a_peer_runs_the_script_or_says_how_to_get_it(peer: AgentPeer) -> None:
    if reason := peer.unavailable():
        assert reason == f'not installed: pip install {peer.distribution}'
    else:
        assert await peer.step() > 0


def test_concurrent_runs_are_counted() -> None:
    found = concurrent_runs(3)
    assert (found.count, found.correct) == (3, 3)
    assert found.seconds > 0
    assert found.pss is None or found.pss > 0


def test_concurrent_runs_that_fail_report_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / 'python'
    broken.write_text('#!/bin/sh\necho "no memory left" >&2\nexit 1\n', encoding='utf-8')
    broken.chmod(0o755)
    monkeypatch.setattr(sys, 'executable', str(broken))
    with pytest.raises(AgentError, match='3 concurrent runs: no memory left'):
        concurrent_runs(3)


async def test_the_barrier_opens_when_every_run_has_arrived() -> None:
    barrier = Barrier(2)
    barrier.arrive(0)
    barrier.arrive(0)
    assert not barrier.is_open
    barrier.arrive(1)
    await barrier.wait()
    assert barrier.is_open


async def test_the_first_token_is_timed_three_ways() -> None:
    found = await first_token(2)
    assert found.sdk.median > 0
    assert found.sdk.repeats == found.model_adds.repeats == found.agent_adds.repeats == 2


def test_the_server_streams_chunks_over_a_persistent_connection() -> None:
    with chat_server() as url, httpx2.Client() as client:
        for _ in range(2):
            answer = client.post(f'{url}/chat/completions', json={'model': 'bench', 'stream': True})
            events = [line.removeprefix('data: ') for line in answer.text.splitlines() if line]
            chunks: list[Any] = [json.loads(event) for event in events[:-1]]
            assert [chunk['choices'][0]['delta'].get('content') for chunk in chunks] == [*CHUNKS, None]
            assert (chunks[-1]['choices'][0]['finish_reason'], events[-1]) == ('stop', '[DONE]')


def test_imports_are_timed_in_a_new_process() -> None:
    timed = import_time('import json.tool', 1, before='assert "json.tool" not in __import__("sys").modules')
    assert timed.median > 0
    assert 'json.tool' not in sys.modules


def test_a_failed_import_is_reported() -> None:
    with pytest.raises(AgentError, match="imports in a new process: ModuleNotFoundError: No module named 'no_"):
        import_time('import no_such_package', 1)
