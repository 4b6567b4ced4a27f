"""Checkpoints: the files of the workspace after each step of a run that changed some."""

import functools
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from habilis.agent.durable.file_history import FileHistory
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.records import CHECKPOINT_CODEC, FILES, Checkpoint
from habilis.core.codec import Json
from habilis.core.errors import NotDurable, WorkspaceError
from habilis.journal import Record
from habilis.journal.runs import RunView
from habilis.sandbox.files.workspace import Workspace
from habilis.tools.attempts import on_thread

_COMMIT = re.compile('([0-9a-f]{40})?')
logger = logging.getLogger('habilis.agent')


class Checkpoints:
    """Stores the files of one run, and records where."""

    def __init__(self, workspace: Workspace, recorder: Recorder, task: str) -> None:
        self._workspace = workspace
        self._history = FileHistory(Workspace(workspace.folder))  # restores protected files, too
        self._recorder = recorder
        self._task = task
        self._last: Checkpoint | None = None

    async def save(self, step: int, code: str = '') -> None:
        """Store the files after a step, if some have changed. Raises `WorkspaceError` at the start of the run only."""
        if self._last is None:
            await self._begin()
        message = f'step {step}: {self._task}\n\n{code}'.strip()
        made = Checkpoint(step=step, workspace=str(self._workspace.folder))
        try:
            saved = await on_thread(lambda: self._history.save(message))
        except WorkspaceError as error:
            if step == 0:
                raise
            logger.warning('no checkpoint after step %d: %s', step, error)
            made = replace(made, problem=str(error))
        else:
            made = replace(made, commit=saved.commit, too_large=saved.too_large)
        if made.too_large and (self._last is None or made.too_large != self._last.too_large):
            logger.warning('too large for a checkpoint: %s', ', '.join(made.too_large[:5]))
        if self._last is None or replace(made, step=self._last.step) != self._last:
            await self._recorder.stored(made)
        self._last = made

    async def _begin(self) -> None:
        """A fork that has no checkpoint of its own yet gets the files that its run had at that step."""
        journal = self._recorder.journal
        place = getattr(journal.store, 'path', None) or getattr(journal.store, 'folder', None)
        if isinstance(place, Path):  # a restore must not bring back an older journal
            await on_thread(lambda: self._history.leave_out(place))
        records = [record for record in journal.loaded if record.path == self._recorder.scope.path]
        found = [(record, await _checkpoint(record, journal.value_of)) for record in records]
        stored = [(record, checkpoint) for record, checkpoint in found if checkpoint is not None and checkpoint.commit]
        if not stored:
            return
        record, last = stored[-1]
        if journal.info.parent and record.at < journal.info.created:
            await on_thread(functools.partial(self._bring_back, last))
        else:  # a fork records its first one even if no file has changed: from then on it has its own
            self._last = last

    def _bring_back(self, checkpoint: Checkpoint) -> None:
        history = history_of(checkpoint)
        is_here = checkpoint.workspace == str(self._workspace.folder)
        try:
            if is_here:
                changed = history.go_back(checkpoint.commit, keep=checkpoint.too_large)
            else:
                changed = history.copy_to(checkpoint.commit, self._workspace)
        except WorkspaceError as error:
            msg = (
                f'a fork gets the files of its step {checkpoint.step}, but {error}: resume it in an empty folder '
                f'(--workspace DIR), or first restore them: habilis runs restore {self._recorder.journal.run} '
                f'--at {checkpoint.step}'
            )
            raise WorkspaceError(msg) from error
        if changed:
            logger.warning('the files are those after step %d again: %d changed', checkpoint.step, len(changed))


@dataclass(frozen=True, kw_only=True)
class StoredCheckpoint:
    """A checkpoint of a recorded run."""

    checkpoint: Checkpoint
    at: float
    before: str | None = None
    """The state before it in the same run; None for the first."""


async def read_checkpoints(view: RunView, path: str) -> list[StoredCheckpoint]:
    """The checkpoints of the agent that is recorded at this path, in order."""
    found: list[StoredCheckpoint] = []
    before: str | None = None
    for record in view.records:
        checkpoint = await _checkpoint(record, view.value_or_none) if record.path == path else None
        if checkpoint is None or (checkpoint.commit and checkpoint.commit == before):
            continue  # the same again: a resumed run that found its files unchanged
        found.append(StoredCheckpoint(checkpoint=checkpoint, at=record.at, before=before))
        before = checkpoint.commit or before
    return found


async def _checkpoint(record: Record, value_of: Callable[[Record], Awaitable[Json]]) -> Checkpoint | None:
    value = await value_of(record) if record.kind == 'noted' else None
    if not isinstance(value, dict) or FILES not in value:
        return None
    try:
        checkpoint = CHECKPOINT_CODEC.read(value[FILES])
    except NotDurable:
        return None
    return checkpoint if _COMMIT.fullmatch(checkpoint.commit) else None  # it becomes an argument of git


def history_of(checkpoint: Checkpoint) -> FileHistory:
    """The history that has a checkpoint. Raises `WorkspaceError` if it is not on this machine."""
    history = FileHistory(Workspace(Path(checkpoint.workspace)))
    if not history.has(checkpoint.commit):
        msg = f'the files of this checkpoint are not on this machine: {history.folder} does not have them'
        raise WorkspaceError(msg)
    return history
