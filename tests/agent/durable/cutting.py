"""Truncates a run after each of its records and resumes it: the result must be the same as before."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from habilis.agent import Agent, Result
from habilis.agent.contract import Step
from habilis.agent.events import CellFinished
from habilis.core.codec import Json
from habilis.core.errors import AgentError
from habilis.journal import Record, Store
from habilis.journal.copies import copy_run
from habilis.journal.index import name_of
from habilis.models import ScriptedModel
from habilis.models.scripted import Scripted
from tests.agent.hooks.watching import Seen

Effects = list[str]
"""Effects of tools, in order."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A run from start to end."""

    replies: Sequence[Scripted]
    options: Callable[[Effects], dict[str, Any]] = lambda effects: dict[str, Any]()
    """Options of the agent; called once per process."""

    run: dict[str, Any] = field(default_factory=dict[str, Any])
    output_type: Any = None
    functions: bool = False
    context_tokens: int = 128_000
    answer: str = 'Ann'
    """The answer to questions of the run."""


@dataclass(kw_only=True)
class Process:
    """An agent as a new process would create it."""

    agent: Agent[Any]
    model: ScriptedModel
    effects: Effects
    seen: Seen


def process(scenario: Scenario, store: Store, *, replies: int = 0) -> Process:
    """A new process, whose model skips the replies it has given before."""
    model = ScriptedModel(
        scenario.replies[replies:],
        functions=scenario.functions,
        context_tokens=scenario.context_tokens,
        name='scripted:scenario',
    )
    effects, seen = Effects(), Seen()
    options = scenario.options(effects)
    options['journal'] = store
    options['hooks'] = [*options.get('hooks', ()), seen]
    agent = Agent[Any](model, output_type=scenario.output_type, **options)
    return Process(agent=agent, model=model, effects=effects, seen=seen)


async def to_the_end(scenario: Scenario, agent: Agent[Any], result: Result[Any]) -> Result[Any]:
    """Resume until there is an answer."""
    while result.ended != 'answer':
        if result.ended == 'approval':
            for waiting in result.waiting:
                answer: Json = True if waiting.tool else {'again': True}
                await agent.answer(result.run_id, answer, path=waiting.path)
        result = await agent.resume(result.run_id, scenario.answer if result.ended == 'question' else None)
    return result


async def resumed(scenario: Scenario, agent: Agent[Any], run: str) -> Result[Any]:
    """Resume a run from its record, up to its answer."""
    try:
        result = await agent.resume(run)
    except AgentError as error:
        if 'pass the answer' not in str(error):
            raise
        result = await agent.resume(run, scenario.answer)
    return await to_the_end(scenario, agent, result)


async def check_all_cuts(scenario: Scenario, store: Store, *, every: int = 1) -> Result[Any]:
    """Truncate the run after every record, and resume it. `every`: only after every so many, others each time."""
    whole = process(scenario, store)
    async with whole.agent as agent:
        options = scenario.run.copy()
        options['run_id'] = 'run-whole'
        expected = await to_the_end(scenario, agent, await agent.run('Do it.', **options))
    records = await store.load('run-whole')
    info = await store.info('run-whole')
    assert info.status == 'done'
    done = _done(records)
    assert len(whole.model.requests) == done.asks, 'each request was recorded'
    for cut in range(random.randint(1, every), len(records) + 1, every):
        before = _done(records[:cut])
        copy = await copy_run(store, info, upto=cut)
        part = process(scenario, store, replies=before.asks)
        async with part.agent as agent:
            result = await resumed(scenario, agent, copy.run)
        at = f'cut after record {cut}: {records[cut - 1].path} {records[cut - 1].kind}'
        assert len(part.model.requests) == done.asks - before.asks, at
        assert len(part.seen.of(CellFinished)) == done.cells - before.cells, at
        assert len(part.effects) == len(whole.effects) - before.calls, at
        assert outline(result) == outline(expected), at
        assert result.run_id == copy.run
        assert (await store.info(copy.run)).status == 'done'
    return expected


@dataclass(frozen=True, kw_only=True)
class _Done:
    asks: int
    cells: int
    calls: int


def _done(records: Sequence[Record]) -> _Done:
    ended = [record for record in records if record.kind in {'done', 'failed'}]
    names = [name_of(record.path) for record in ended]
    kept = [name for name in names if '(' in name and not name.startswith(('todo', 'approve', 'notify', 'ask_user'))]
    denied = [record for record in ended if isinstance(record.value, dict) and record.value.get('type') == 'ToolDenied']
    return _Done(
        asks=names.count('ask') + names.count('compaction'),
        cells=names.count('cell'),
        calls=len(kept) - len(denied) + names.count('validated'),
    )


def outline(result: Result[Any]) -> object:
    """A result without times and ids."""
    return (
        result.output,
        result.ended,
        [_step(step) for step in result.steps],
        replace(result.usage, seconds=0.0),
        {name: replace(usage, seconds=0.0) for name, usage in result.usage_by_model.items()},
        result.messages,
        result.variables,
        result.summary,
    )


def _step(step: Step) -> object:
    cell = step.cell and replace(
        step.cell, seconds=0.0, waited=0.0, calls=tuple(replace(call, seconds=0.0, at=None) for call in step.cell.calls)
    )
    return (
        step.number,
        replace(step.reply, usage=replace(step.reply.usage, seconds=0.0)),
        step.code,
        cell,
        tuple(replace(call, seconds=0.0, at=None) for call in step.calls),
        step.observation,
    )
