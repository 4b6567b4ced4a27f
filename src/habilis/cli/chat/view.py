"""The view of a session in a terminal: shows its turns, and asks in the prompt of the chat."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from habilis.agent.contract import Waiting
from habilis.agent.events import ModelReplied
from habilis.agent.hooks.sanitize import escape_controls
from habilis.assistant import FileEdit, FilesEdited, SessionEvent, TurnAbandoned, TurnEnded, TurnStarted
from habilis.assistant.project_instructions import InstructionFile
from habilis.cli.chat.file_changes import summary
from habilis.cli.chat.front import FrontEnd
from habilis.cli.chat.progress import TurnProgress
from habilis.cli.chat.turn_view import TurnView
from habilis.cli.pictures import picture_folder
from habilis.cli.printing import Page
from habilis.cli.terminal_user import YES, TerminalUser


@dataclass(frozen=True, kw_only=True)
class WritableFolder:
    """Where a turn can write."""

    path: str | None
    """None: nowhere that stays."""

    takes_pictures: bool
    """Whether pictures are saved there without a question."""


class ChatView(TerminalUser):
    """What a session shows and asks, and for all others who ask at a terminal: downloads."""

    def __init__(self, front: FrontEnd, place: Callable[[], WritableFolder], *, bell: float) -> None:
        super().__init__(is_present=front.is_present)
        self._bell = bell
        self._front = front
        self._place = place
        self._view: TurnView | None = None
        """Of the turn under way."""

        self._instructions: Sequence[InstructionFile] = ()
        """What was shown last."""

        self.progress = TurnProgress()
        self._is_live = front.watch(self.progress.rows)
        self.edits: list[FileEdit] = []
        """What the last turn has changed in the shared folder, or the one under way so far."""

        self.context_tokens = 0
        """Of the last request and its reply."""

        self.seconds = 0.0
        """Duration of the last turn."""

        self._began = 0.0
        self._working = contextlib.ExitStack()
        self._loop = asyncio.get_running_loop()
        self._one = threading.Lock()
        self._turn = 0

    def show(self, event: SessionEvent) -> None:
        """Show an event."""
        if isinstance(event, ModelReplied) and not event.parent:
            self.context_tokens = event.reply.usage.tokens
        match event:
            case TurnStarted():
                self.show_instructions(self._instructions if event.instructions is None else event.instructions)
                self._began = time.monotonic()
                self._working.enter_context(self._front.working('starting'))
                self.edits.clear()
                place = self._place()
                pictures = picture_folder(place.path if place.takes_pictures else None, event.run)
                self.progress.start()
                progress = self.progress if self._is_live else None
                self._view = TurnView(pictures, progress, shows_files=place.path is None)
            case TurnEnded():
                self._end(event)
            case TurnAbandoned():
                print(f'the turn before cannot be continued: {event.error}', flush=True)
            case _ if self._view is not None:
                if isinstance(event, FilesEdited):
                    self.edits += event.edits
                self._view(event)
            case _:
                pass

    def show_instructions(self, files: Sequence[InstructionFile]) -> None:
        """Say which instructions of the project count, if that is new."""
        if files != self._instructions:
            print(f'instructions: {", ".join(map(str, files)) or "none any more"}', flush=True)
        self._instructions = files

    def _end(self, event: TurnEnded) -> None:
        view, self._view = self._view, None
        if view is not None:
            view.end()
        self._working.close()
        self.edits = list(event.edits)
        if event.edits:
            Page().text(summary(event.edits), 'dim')
        self.seconds = time.monotonic() - self._began
        if self.seconds >= self._bell > 0:
            self._front.ring()
        if event.result is not None and event.result.steps:  # also of a turn whose replies come from its record
            self.context_tokens = event.result.steps[-1].reply.usage.tokens
        if event.error is not None:  # the questions of this turn, those that wait too, get no answer
            self._turn += 1
            self._front.drop_question()

    async def may_repeat(self, call: Waiting) -> bool:
        """Ask whether to repeat a call that may have had its effect."""
        answer = await self._front.ask(f'\n{escape_controls(call.question)}\nRun it again? [y/N] ')
        return (answer or '').strip().lower() in YES

    def ask(self, prompt: str) -> str | None:
        """Read one line. Blocks the thread that it is called on, which must not be that of the event loop."""
        turn = self._turn
        with self._one:
            if not self.is_present or turn != self._turn:
                return None
            return asyncio.run_coroutine_threadsafe(self._front.ask(prompt), self._loop).result()
