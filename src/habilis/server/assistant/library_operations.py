"""The tool library over HTTP: list, search, read, test, edit, roll back."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from habilis.core.errors import ForgeError, ToolNotFound
from habilis.forge.library.library import Library
from habilis.forge.library.retests import retest
from habilis.forge.library.revisions import revise
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import (
    TestedTool,
    ToolDetails,
    ToolEdit,
    ToolList,
    ToolModel,
    UsageModel,
    VersionChoice,
    json_response,
)
from habilis.server.models import parse_request
from habilis.server.operations import BadRequest

MAX_FOUND = 50


async def list_tools(conversations: Conversations, request: Request) -> Response:
    """The tools of the library by name; with `q`, those that fit it, best first."""
    query = request.query_params.get('q', '').strip()
    tools = [] if conversations.library is None else await asyncio.to_thread(_find, conversations.library, query)
    return json_response(ToolList(tools=tools))


async def get_tool(conversations: Conversations, request: Request) -> Response:
    """The version of a tool that is in use, or another `version`: its code and its tests."""
    library, name = _library(conversations, request)
    version = request.query_params.get('version')
    if version is not None and not version.isdecimal():
        msg = f'version={version[:40]!r} is not a number'
        raise BadRequest(msg)
    return json_response(await asyncio.to_thread(_details, library, name, int(version or 0) or None))


async def run_tests(conversations: Conversations, request: Request) -> Response:
    """Run the tests of the version in use again."""
    library, name = _library(conversations, request)
    library.current(name)  # raises if there is no such tool
    [result] = await retest(library, [name])
    return json_response(TestedTool.model_validate(result.verification, from_attributes=True))


async def edit_tool(conversations: Conversations, request: Request) -> Response:
    """Keep new code, and perhaps new tests, as the next version, if they pass."""
    library, name = _library(conversations, request)
    wanted = parse_request(ToolEdit, await request.body())
    await revise(library, name, wanted.code, tests=wanted.tests, note=wanted.note)
    return json_response(await asyncio.to_thread(_details, library, name, None), 201)


async def use_version(conversations: Conversations, request: Request) -> Response:
    """Use another version of a tool from now on."""
    library, name = _library(conversations, request)
    wanted = parse_request(VersionChoice, await request.body())
    await asyncio.to_thread(library.use_version, name, wanted.version)
    return json_response(await asyncio.to_thread(_details, library, name, None))


OPERATIONS = (
    ('GET', '/api/tools', list_tools, None, ToolList),
    ('GET', '/api/tools/{name}', get_tool, None, ToolDetails),
    ('POST', '/api/tools/{name}/test', run_tests, None, TestedTool),
    ('POST', '/api/tools/{name}/versions', edit_tool, ToolEdit, ToolDetails),
    ('PUT', '/api/tools/{name}/current', use_version, VersionChoice, ToolDetails),
)


def _library(conversations: Conversations, request: Request) -> tuple[Library, str]:
    """The library, and the tool that the path names. Raises `ToolNotFound` if there is no library."""
    name = request.path_params['name']
    if conversations.library is None:
        msg = f'there is no tool {name!r}: this server has no library (--library)'
        raise ToolNotFound(msg)
    return conversations.library, name


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
        current=library.current(name),
        usage=[
            UsageModel.model_validate(one, from_attributes=True) for one in library.usage.read() if one.name == name
        ],
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
