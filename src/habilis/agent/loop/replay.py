"""Replays the record of a run, so that no recorded effect happens twice."""

from collections.abc import Mapping

from habilis.agent.contract import Result, RunLimits
from habilis.agent.durable.records import Resumed
from habilis.agent.durable.runs import LoadedRun
from habilis.agent.loop.run import Run


async def replay(run: Run, loaded: LoadedRun, *, answer: str | None, limits: RunLimits | None) -> Result[object] | None:
    """Replay the record, and record that the run continues. Returns the result if the run ends with its record."""
    recorder = loaded.recorder
    artifacts: Mapping[str, str] = loaded.inputs.artifacts
    result: Result[object] | None = None
    has_input = recorder.will_continue = limits is not None or answer is not None
    run.limit_after_replay(limits)
    run.leave_stopped_code(answer is not None)  # the model decides, with the answer, what to do instead
    while True:
        while recorder.notes and recorder.notes[0].after <= len(run.steps):
            _apply(run, recorder.notes.pop(0))
            result = None
        if not recorder.is_replaying or (answer is not None and recorder.is_at_failed_request):
            break  # the request that follows has the answer
        result = await run.step(artifacts=artifacts)
        artifacts = {}
        if run.is_interrupted:  # the last step of the record is not complete
            return result
    recorder.will_continue = False
    run.leave_stopped_code(False)
    if result is not None and (result.ended in {'answer', 'approval'} or not has_input):
        return result
    if has_input:
        note = Resumed(after=len(run.steps), answer=answer, limits=limits)
        await recorder.resumed(note)
        _apply(run, note)
    return None


def _apply(run: Run, note: Resumed) -> None:
    if note.limits is not None:
        run.extend(note.limits)
    if note.answer is not None:
        run.tell(note.answer)
