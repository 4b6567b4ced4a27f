"""Ask whether to share the folder of the chat with the code, and say how it is shared."""

import os
from dataclasses import replace
from pathlib import Path

from habilis.assistant.shared_folders import Share, is_wide, remember_share, remembered_share
from habilis.cli.chat.front import FrontEnd
from habilis.cli.run.request import CommandRequest

_ANSWERS: dict[str, Share] = {'r': 'read', 'read': 'read', 'w': 'write', 'write': 'write', 'n': 'no', 'no': 'no'}


async def choose_share(front: FrontEnd, folder: str) -> Share:
    """What the user has said about a folder; asks once. A folder with all of their files is never shared unasked."""
    wide, known = is_wide(folder), remembered_share(folder)
    if known == 'no' or (known is not None and not wide):
        return known
    warning = 'This folder has all your files: keys, mails, everything.\n' if wide else ''
    choices = 'r/w/N' if wide else 'r/w/n'
    default = 'no' if wide else ''  # an Enter that was meant for a message must not share anything
    while True:
        # the path may fill any number of rows, so the prompt has a line of its own
        question = f'{warning}Share {shown_path(folder)} with the code?\nread, write or no? [{choices}] '
        answer = await front.ask(question)
        share = None if answer is None else _ANSWERS.get(answer.strip().lower() or default)
        if share is not None:
            remember_share(folder, share)
        if share is not None or answer is None:
            return share or 'no'


def with_share(request: CommandRequest, share: Share) -> CommandRequest:
    """The request with the current folder shared in this way."""
    return replace(request, workspace=None if share == 'no' else os.getcwd(), read_only=share == 'read')


def shared_folder(request: CommandRequest) -> str:
    """The folder of the chat, and what the code may do with it."""
    if request.workspace is None:
        return f'{shown_path(os.getcwd())} (not shared)'
    return f'{shown_path(request.workspace)} ({"read" if request.read_only else "write"})'


def shown_path(folder: str) -> str:
    """The whole path, with `~` for the home folder."""
    path = Path(os.path.realpath(folder))
    home = Path.home().resolve()
    return str('~' / path.relative_to(home)) if path.is_relative_to(home) else str(path)
