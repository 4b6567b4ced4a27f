"""`FinishedRollouts`: the rollouts of a named set that are finished, each in the record of its run."""

import time
from dataclasses import dataclass, fields

from habilis.agent.durable.runs import JournalChoice, RunStore
from habilis.core.codec import dump, parse
from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.errors import AgentError, RunNotFound
from habilis.core.narrowing import json_object
from habilis.journal.contract import Record
from habilis.journal.copies import new_run_id
from habilis.journal.creation import as_blob
from habilis.journal.leases.claims import hold_run
from habilis.journal.lookup import value_of
from habilis.journal.runs import delete_run
from habilis.journal.values import fingerprint
from habilis.models.contract import Function
from habilis.rollouts.contract import Rollout, RolloutRecord, RolloutTask

_ROLLOUT = 'rollout'
"""Field of the note with the rollout. It is written when the reward is known."""


@dataclass(frozen=True, kw_only=True)
class RecordedRollout(RolloutRecord):
    """A rollout as it is recorded."""

    functions: tuple[tuple[str, str, str], ...] = ()
    """Name, description, and parameters as JSON: as a type, they would be endless."""


_CODEC = DataclassCodec(RecordedRollout)
_FIELDS = frozenset(one.name for one in fields(RolloutRecord))


class FinishedRollouts:
    """Finds the rollouts of a set again. A set without a name is always new."""

    def __init__(self, journal: JournalChoice, *, name: str, model: str) -> None:
        self._runs = RunStore(journal)
        self._name = name
        self._model = model
        if name and self._runs.is_off:
            msg = f'the rollouts {name!r} cannot be found again without a journal; pass journal=… to the agent'
            raise AgentError(msg)

    def run_of(self, task: RolloutTask, number: int, sample: int, seed: int) -> str:
        """The id of the run of a sample: the same in every process, if the set has a name."""
        if not self._name:
            return new_run_id()
        content = fingerprint(self._model, task.task, task.expected, task.variables, task.prepare, seed)
        return f'{self._name}-{number}-{sample}-{content}'

    async def find(self, run: str, task: RolloutTask) -> Rollout | None:
        """The rollout of a run. None if it is not finished: what there is of it is deleted, so that it can start anew.

        Raises `RunBusy` while another process executes it, and `AgentError` if it has called a tool whose calls must
        not be repeated.
        """
        if not self._name:
            return None
        store = self._runs.store
        try:
            records = await store.load(run)
        except RunNotFound:
            return None
        for record in reversed(records):
            value = await value_of(store, run, record) if record.kind == 'noted' and not record.path else None
            if isinstance(value, dict) and _ROLLOUT in value:
                return _read(_CODEC.decode(value[_ROLLOUT]), task)
        if any(record.kind == 'started' for record in records):
            msg = (
                f'{run} was not finished, and has called a tool whose calls must not be repeated; '
                f'look at it with habilis runs show {run}, and delete it to sample it anew'
            )
            raise AgentError(msg)
        await delete_run(store, run)
        return None

    async def keep(self, rollout: Rollout) -> None:
        """Record a rollout, without its task."""
        if not self._name:
            return
        store, run = self._runs.store, rollout.run_id
        value, blob, blobs = as_blob({_ROLLOUT: _CODEC.encode(_written(rollout))})
        async with hold_run(store, run) as lease:
            seq = len(await store.load(run)) + 1
            note = Record(seq=seq, path='', kind='noted', value=value, blob=blob, at=round(time.time(), 6))
            await store.append(run, [note], epoch=lease.epoch, blobs=blobs)

    async def close(self) -> None:
        """Close the store, unless it was passed in."""
        await self._runs.close()


def _written(rollout: Rollout) -> RecordedRollout:
    functions = tuple((one.name, one.description, dump(dict(one.parameters))) for one in rollout.functions)
    return RecordedRollout(functions=functions, **{name: getattr(rollout, name) for name in _FIELDS})


def _read(recorded: RecordedRollout, task: RolloutTask) -> Rollout:
    functions = tuple(
        Function(name=name, description=description, parameters=json_object(parse(text)))
        for name, description, text in recorded.functions
    )
    return Rollout(task=task, functions=functions, **{name: getattr(recorded, name) for name in _FIELDS})
