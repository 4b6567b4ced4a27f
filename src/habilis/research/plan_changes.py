"""Changes of the plan by a person: notes in the journal, which the next planning reads in a recorded step."""

import time
from dataclasses import asdict, dataclass

from habilis.core.codec import Json
from habilis.core.narrowing import fields_in
from habilis.flows import step
from habilis.journal import Journal, Record, Store, recording_scope
from habilis.journal.leases.claims import hold_run
from habilis.journal.lookup import info_of
from habilis.research.contract import PlanChange

PLAN_CHANGE = 'plan change'
"""Field of the note in the journal."""

CHANGES = 'changes'
"""The name of the step that reads them."""


async def change_plan(store: Store, run: str, change: PlanChange, *, user: str | None = None) -> None:
    """Record a change for a run that is not being executed. Raises `RunBusy` if it is, and `RunNotFound`."""
    await info_of(store, run, user)
    async with hold_run(store, run) as lease:
        number = len(await store.load(run)) + 1
        record = Record(seq=number, path='', kind='noted', value=_note(change), at=round(time.time(), 6))
        await store.append(run, [record], epoch=lease.epoch)


async def write_change(journal: Journal, change: PlanChange) -> None:
    """Record a change for a run that this process executes."""
    await journal.write('noted', '', value=_note(change))


def _note(change: PlanChange) -> Json:
    return {PLAN_CHANGE: asdict(change)}


@dataclass(frozen=True, kw_only=True)
class ReadChanges:
    """Changes that were read, up to a record of the run."""

    changes: tuple[PlanChange, ...]
    upto: int


async def read_changes(after: int) -> ReadChanges:
    """The changes after a record. Recorded, so that a resumed run obeys them at the same place."""
    scope = recording_scope()
    assert scope is not None  # called by a flow
    journal = scope.journal

    async def read(after: int) -> ReadChanges:
        records = await journal.store.load(journal.run, after=after)
        found = [fields_in(fields_in(one.value).get(PLAN_CHANGE)) for one in records]
        upto = records[-1].seq if records else after
        return ReadChanges(changes=tuple(_change(fields) for fields in found if fields), upto=upto)

    return await step(name=CHANGES)(read)(after)


def _change(fields: dict[str, object]) -> PlanChange:
    add, drop = fields.get('add'), fields.get('drop')
    return PlanChange(add=add if isinstance(add, str) else '', drop=drop if isinstance(drop, int) else 0)
