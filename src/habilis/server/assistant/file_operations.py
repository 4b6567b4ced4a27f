"""The files of a conversation's workspace over HTTP."""

import asyncio
import contextlib

from starlette.requests import Request
from starlette.responses import Response

from habilis.core.errors import WorkspaceFileNotFound
from habilis.sandbox.files.workspace import Workspace
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import FileModel, WorkspaceFiles, json_response
from habilis.server.operations import Download

FILES = '/api/conversations/{id}/files'


async def list_files(conversations: Conversations, request: Request) -> Response:
    """The files of the workspace; none if no folder is shared."""
    workspace = await _workspace(conversations, request)
    found = {} if workspace is None else await asyncio.to_thread(workspace.scan)
    # A name need not be valid Unicode, which JSON insists on: such a file is not offered.
    files = [FileModel(path=path, size=state[0]) for path, state in sorted(found.items()) if _is_text(path)]
    return json_response(WorkspaceFiles(files=files))


async def read_file(conversations: Conversations, request: Request) -> Response:
    """A file of the workspace."""
    path, workspace = str(request.path_params['path']), await _workspace(conversations, request)
    if workspace is None:
        msg = f'there is no file {path!r}: no folder is shared with this conversation'
        raise WorkspaceFileNotFound(msg)
    opened = contextlib.ExitStack()
    return Download(await asyncio.to_thread(opened.enter_context, workspace.opened(path)), opened)


OPERATIONS = (
    ('GET', FILES, list_files, None, WorkspaceFiles),
    ('GET', FILES + '/{path:path}', read_file, None, bytes),
)


async def _workspace(conversations: Conversations, request: Request) -> Workspace | None:
    conversation = await conversations.get(request.scope['owner'], request.path_params['id'])
    folder = conversation.session.opened.folder
    return None if folder is None else Workspace.at(folder, must_exist=True, read_only=True)


def _is_text(path: str) -> bool:
    return path.isascii() or not any('\ud800' <= letter <= '\udfff' for letter in path)
