"""The question which recorded chat to go on with: a list, and a search in it."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from habilis.agent.durable.trajectory import read_trajectories
from habilis.assistant.records import sessions_of
from habilis.cli.chat.front import FrontEnd
from habilis.cli.printing import Page, format_age, print_table
from habilis.cli.run.request import CommandRequest
from habilis.core.errors import JournalError
from habilis.journal import Store
from habilis.journal.runs import read_run
from habilis.memory import Memory, SessionInfo

MAX_SHOWN = 15
QUESTION = 'Which one? A number, or words to search for [1] '


@dataclass(frozen=True, kw_only=True)
class RecordedChat:
    """A chat to choose."""

    info: SessionInfo
    run: str
    """Id of its last run."""

    is_here: bool
    """Whether it began in this folder."""

    def matches(self, words: str) -> bool:
        """Whether its title or its id has all the words."""
        text = f'{self.info.title} {self.info.session}'.lower()
        return all(word in text for word in words.lower().split())


async def recorded_chats(store: Store, memory: Memory) -> list[RecordedChat]:
    """All chats of the user: those of this folder first, then the newest."""
    last: dict[str, str] = {}
    for run in await store.runs(user=memory.user):  # newest first
        last.setdefault(run.session, run.run)
    here = sessions_of(os.getcwd())
    found = [
        RecordedChat(info=info, run=last[info.session], is_here=info.session.startswith(here))
        for info in await memory.sessions()
        if info.session in last
    ]
    return sorted(found, key=lambda chat: (not chat.is_here, -chat.info.last))


async def pick_chat(front: FrontEnd, store: Store, memory: Memory) -> str:
    """Ask which chat to go on with; a single one of this folder is not asked about. Empty if there is none.

    Raises `JournalError` if the user chooses none.
    """
    chats = await recorded_chats(store, memory)
    if len(chats) <= 1:
        return chats[0].info.session if chats and chats[0].is_here else ''
    shown: Sequence[RecordedChat] = chats
    while len(shown) > 1:
        await _print(shown, store, memory.user)
        answer = await front.ask(QUESTION)
        if answer is None:
            msg = 'no chat was chosen'
            raise JournalError(msg)
        answer = answer.strip() or '1'
        if answer.isdecimal() and 0 < int(answer) <= len(shown):
            return shown[int(answer) - 1].info.session
        found = [chat for chat in chats if chat.matches(answer)]
        if not found:
            Page().text('no chat has these words', 'dim')
        shown = found or shown
    return shown[0].info.session


async def _print(chats: Sequence[RecordedChat], store: Store, user: str) -> None:
    now = time.time()
    rows = [
        (str(number), chat.info.title, await _folder(chat, store, user), format_age(now - chat.info.last),
         str(chat.info.turns))
        for number, chat in enumerate(chats[:MAX_SHOWN], 1)
    ]  # fmt: skip
    print_table(('', 'TITLE', 'FOLDER', 'LAST', 'MESSAGES'), rows, flexible=('TITLE',))
    if len(chats) > MAX_SHOWN:
        Page().text(f'and {len(chats) - MAX_SHOWN} more', 'dim')


async def _folder(chat: RecordedChat, store: Store, user: str) -> str:
    """The shared folder of a chat; empty if it has none."""
    agents = await read_trajectories(await read_run(store, chat.run, user=user))
    request = CommandRequest.from_meta(agents[0].inputs.meta) if agents and agents[0].inputs else None
    folder = (request and request.workspace) or ''
    return '.' if folder == os.getcwd() else folder
