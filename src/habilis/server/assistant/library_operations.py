"""The tool library over HTTP: list, search and read."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from habilis.core.errors import ForgeError, ToolNotFound
from habilis.forge.library.library import Library
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import ToolDetails, ToolList, ToolModel, json_response
from habilis.server.operations import BadRequest

MAX_FOUND = 50


async def list_tools(conversations: Conversations, request: Request) -> Response:
    """The tools of the library by name; with `q`, those that fit it, best first."""
    query = request.query_params.get('q', '').strip()
    tools = [] if conversations.library is None else await asyncio.to_thread(_find, conversations.library, query)
    return json_response(ToolList(tools=tools))


async def get_tool(conversations: Conversations, request: Request) -> Response:
    """The version of a tool that is in use, or another `version`: its code and its tests."""
    name, version = request.path_params['name'], request.query_params.get('version')
    if conversations.library is None:
        msg = f'there is no tool {name!r}: this server has no library (--library)'
        raise ToolNotFound(msg)
    if version is not None and not version.isdecimal():
        msg = f'version={version[:40]!r} is not a number'
        raise BadRequest(msg)
    return json_response(await asyncio.to_thread(_details, conversations.library, name, int(version or 0) or None))


OPERATIONS = (
    ('GET', '/api/tools', list_tools, None, ToolList),
    ('GET', '/api/tools/{name}', get_tool, None, ToolDetails),
)


def _find(library: Library, query: str) -> list[ToolModel]:
    if query:
        return [ToolModel.model_validate(one, from_attributes=True) for one in library.search(query, limit=MAX_FOUND)]
    found: list[ToolModel] = []
    for name in library.names():
        try:
            found.append(ToolModel.model_validate(library.manifest(name), from_attributes=True))
        except ForgeError as error:  # damaged: the others are there
            found.append(ToolModel(name=name, version=0, summary=str(error), signature=''))
    return found


def _details(library: Library, name: str, version: int | None) -> ToolDetails:
    made, source = library.manifest(name, version), library.candidate(name, version)
    return ToolDetails(
        name=name,
        version=made.version,
        summary=made.summary,
        signature=made.signature,
        versions=library.versions(name),
        origin=made.origin,
        request=made.request,
        language=made.language,
        code=source.code,
        tests=source.tests,
        test_count=made.tests,
        findings=list(made.findings),
    )
