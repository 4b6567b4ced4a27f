"""A run that does not come to its first step: it can be resumed, or was never begun."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Never

import pytest

from habilis.agent import Agent
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.loop import setup
from habilis.core.errors import AgentError, ModelError, RunNotFound, SandboxError
from habilis.journal import MemoryStore, Store
from habilis.journal.runs import read_run
from habilis.journal.stores.urls import open_store
from habilis.models import ScriptedModel
from tests.agent.hooks.watching import code
from tests.journal.dying import dying

ANSWER = code('final_answer(n + 1)')


def agent(store: Store, *replies: str, **options: Any) -> Agent[Any]:
    return Agent[Any](ScriptedModel(replies or [ANSWER]), journal=store, **options)


async def _resumed(store: Store, run: str) -> object:
    async with agent(store) as other:
        result = await other.resume(run)
    (trajectory,) = await read_trajectories(await read_run(store, run))
    assert trajectory.inputs.task == 'add'
    assert 'final_answer' in trajectory.inputs.system
    assert 'add' in trajectory.inputs.asked
    return result.output


async def test_a_run_whose_process_died_after_any_operation_is_resumed_or_was_not_begun() -> None:
    operations, ended = 0, False
    while not ended:
        store = MemoryStore()
        with dying(store, operations) as its_store:
            async with agent(its_store) as one:
                await one.run('add', variables={'n': 41}, run_id='run-1')
        ended = not its_store.is_dead
        if operations:
            assert await _resumed(store, 'run-1') == 42
        else:
            with pytest.raises(RunNotFound):
                await store.info('run-1')
        operations += 1
    assert operations > 5


async def test_a_run_whose_sandbox_cannot_start_has_failed_and_can_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*given: object) -> Never:
        msg = 'no sandbox today'
        raise SandboxError(msg)

    store = MemoryStore()
    with monkeypatch.context() as patch:
        patch.setattr(setup, 'open_sandboxes', fails)
        async with agent(store) as one:
            with pytest.raises(SandboxError):
                await one.run('add', variables={'n': 41}, run_id='run-1')
    info = await store.info('run-1')
    assert (info.status, info.error) == ('failed', 'SandboxError: no sandbox today')
    assert await _resumed(store, 'run-1') == 42


async def test_a_run_that_is_cancelled_while_its_sandbox_starts_can_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    starting = asyncio.Event()

    async def waits(*given: object) -> Never:
        starting.set()
        await asyncio.sleep(3600)
        raise AssertionError

    store = MemoryStore()
    with monkeypatch.context() as patch:
        patch.setattr(setup, 'open_sandboxes', waits)
        async with agent(store) as one:
            task = asyncio.create_task(one.run('add', variables={'n': 41}, run_id='run-1'))
            await starting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert (await store.info('run-1')).status == 'stopped'
    assert await _resumed(store, 'run-1') == 42


_PROGRAM = """
import asyncio, sys
from habilis.agent import Agent
from habilis.agent.loop import setup
from habilis.models import ScriptedModel

async def waits(*given):
    print('starting', flush=True)
    await asyncio.sleep(3600)

setup.open_sandboxes = waits
Agent(ScriptedModel([]), journal=sys.argv[1]).run_sync('add', variables={'n': 41}, run_id='run-1')
"""


def _stop_while_starting(where: str, number: signal.Signals) -> None:
    command = [sys.executable, '-c', _PROGRAM, where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b'starting\n'
        os.kill(process.pid, number)


@pytest.mark.one_protocol
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
async def test_a_process_that_is_stopped_while_its_sandbox_starts_leaves_a_run_to_resume(
    tmp_path: Path, number: signal.Signals
) -> None:
    where = f'sqlite:{tmp_path}/runs.db'
    _stop_while_starting(where, number)
    store = open_store(where)
    assert (await read_run(store, 'run-1')).state in {'stopped', 'interrupted'}
    assert await _resumed(store, 'run-1') == 42
    await store.close()


@pytest.mark.parametrize(
    ('options', 'given', 'error'),
    [
        ({'model': 'nobody:nothing'}, {}, ModelError),
        ({}, {'variables': {'not a name': 1}}, AgentError),
        ({}, {'variables': {'x': object()}}, SandboxError),
        ({'python': False}, {'variables': {'x': 1}}, AgentError),
    ],
)
async def test_a_run_that_could_never_start_is_not_recorded(
    options: dict[str, Any], given: dict[str, Any], error: type[Exception]
) -> None:
    store = MemoryStore()
    options = {'model': ScriptedModel([ANSWER]), **options}
    async with Agent[Any](journal=store, **options) as one:
        with pytest.raises(error):
            await one.run('add', run_id='run-1', **given)
    assert await store.runs() == []
