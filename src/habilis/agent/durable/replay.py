"""Bringing a run that was found again to where it was: what is in its record is not done a second time."""

from collections.abc import Mapping

from habilis.agent.contract import Result, RunLimits
from habilis.agent.durable.runs import Found
from habilis.agent.durable.recorder import Resumed
from habilis.agent.loop.run import Run


async def catch_up(run: Run, found: Found, *, answer: str | None, limits: RunLimits | None) -> Result[object] | None:
    """Go through the record, and note that the run goes on from there. The result, if it ends where the record does."""
    recorder = found.recorder
    artifacts: Mapping[str, str] = found.inputs.artifacts
    result: Result[object] | None = None
    given = recorder.goes_on = limits is not None or answer is not None
    run.goes_on_with(limits)
    while True:
        while recorder.notes and recorder.notes[0].after <= len(run.steps):
            _go_on(run, recorder.notes.pop(0))
            result = None
        if not recorder.replaying:
            break
        result = await run.step(artifacts=artifacts)
        artifacts = {}
        if run.interrupted:  # its last step, which is not in the record to its end
            return result
    recorder.goes_on = False
    if result is not None and (result.ended in {'answer', 'approval'} or not given):
        return result
    if given:
        note = Resumed(after=len(run.steps), answer=answer, limits=limits)
        await recorder.resumed(note)
        _go_on(run, note)
    return None


def _go_on(run: Run, note: Resumed) -> None:
    if note.limits is not None:
        run.go_on(note.limits)
    if note.answer is not None:
        run.tell(note.answer)
