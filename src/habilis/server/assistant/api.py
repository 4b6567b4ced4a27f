"""The API of the assistant: a table of operations, and the application that serves it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from habilis._version import __version__
from habilis.agent.durable.edits import fork_edited
from habilis.agent.durable.run_page import run_page
from habilis.agent.durable.step_text import step_text
from habilis.assistant.records import new_session, turns_with_earlier
from habilis.core.codec import Json
from habilis.core.errors import (
    HabilisError,
    ModelError,
    RunBusy,
    RunNotFound,
    StoreUnavailable,
    ToolNotFound,
    WorkspaceFileNotFound,
)
from habilis.journal.contract import RunInfo
from habilis.journal.lookup import info_of
from habilis.journal.questions import open_questions
from habilis.journal.runs import ListedRun, align_runs, delete_run, fork, list_runs, read_run, state_of
from habilis.server import openapi
from habilis.server.access import COOKIE, Access, BodyRefused
from habilis.server.assistant import (
    ag_ui_protocol,
    file_operations,
    fleet_operations,
    library_operations,
    memory_operations,
    openai_protocol,
    research_operations,
    settings_operations,
    vercel_protocol,
)
from habilis.server.assistant.conversations import Conversations, KeyReused
from habilis.server.assistant.models import (
    AnswerRequest,
    ConversationList,
    ConversationModel,
    ForkRequest,
    LoginRequest,
    NewConversation,
    ProblemModel,
    QuestionModel,
    RunComparison,
    RunDetails,
    RunList,
    RunModel,
    StatusModel,
    StepComparison,
    TurnModel,
    TurnRequest,
    json_response,
    read_answer,
)
from habilis.server.assistant.page_files import SafeHeaders, page_paths, page_route
from habilis.server.assistant.streams import stream_run, stream_user
from habilis.server.assistant.turn_choices import TurnChoice
from habilis.server.models import Done, parse_request
from habilis.server.operations import AS_FILE, BadRequest, Operation
from habilis.server.settings import HttpSettings

OPEN_PATHS = frozenset({'/api/health', '/api/login', '/openapi.json'})
"""What needs no token."""

COOKIE_SECONDS = 30 * 24 * 3600


# Conversations --------------------------------------------------------------------------------------------------------


async def get_status(conversations: Conversations, request: Request) -> Response:
    """Who is served, and by what."""
    user = request.scope['owner']
    model = await conversations.model_name(user)
    return json_response(StatusModel(user=user, version=__version__, model=model))


async def list_conversations(conversations: Conversations, request: Request) -> Response:
    """The conversations of the user, the newest first."""
    by_session: dict[str, list[ListedRun]] = {}
    for listed in await list_runs(conversations.store, user=request.scope['owner']):
        if listed.info.session:
            by_session.setdefault(listed.info.session, []).append(listed)
    found = [
        ConversationModel(
            id=session,
            title=turns[-1].info.title,
            state=turns[0].state,
            turns=len(turns),
            updated=max(turn.info.updated for turn in turns),
        )
        for session, turns in by_session.items()
    ]
    return json_response(ConversationList(conversations=found))


async def create_conversation(conversations: Conversations, request: Request) -> Response:
    """Begin a conversation. It is listed from its first message on."""
    return json_response(NewConversation(id=new_session()), 201)


async def take_turn(conversations: Conversations, request: Request) -> Response:
    """Send a message. Its turn is a run, whose events tell the rest; the same Idempotency-Key never begins a second."""
    wanted = parse_request(TurnRequest, await request.body())
    files = [sent.file() for sent in wanted.files]
    user, session = request.scope['owner'], request.path_params['id']
    key = request.headers.get('idempotency-key', '')
    choice = TurnChoice(model=wanted.model, mode=wanted.mode)
    run = await conversations.send(user, session, wanted.message, files=files, key=key, choice=choice)
    return json_response(TurnModel(run=run, session=session), 202)


# Runs -----------------------------------------------------------------------------------------------------------------


async def get_runs(conversations: Conversations, request: Request) -> Response:
    """The newest runs of the user (`limit`: 100), the newest first; with `session`, the turns of a conversation: of a
    fork, also those from before it."""
    user, session, limit = request.scope['owner'], request.query_params.get('session'), _limit(request)
    if session:
        infos = await turns_with_earlier(conversations.store, user, session)
    else:
        infos = await conversations.store.runs(user=user)
    return json_response(RunList(runs=[await _run(conversations, info) for info in infos[:limit]]))


async def get_run(conversations: Conversations, request: Request) -> Response:
    """A run, what it waits for, and what it took so far."""
    info = await info_of(conversations.store, request.path_params['id'], request.scope['owner'])
    found = await open_questions(conversations.store, info.run)
    details = RunDetails(
        **(await _run(conversations, info)).model_dump(),
        questions=[QuestionModel(path=path, request=asked) for path, asked in found],
    )
    return json_response(details)


async def compare_runs(conversations: Conversations, request: Request) -> Response:
    """The steps of two runs side by side, by path."""
    left, right = [
        await read_run(conversations.store, request.path_params[name], user=request.scope['owner'])
        for name in ('id', 'other')
    ]
    steps: list[StepComparison] = []
    for pair in align_runs(left, right):
        ours, theirs = await step_text(left, pair.path, pair.left), await step_text(right, pair.path, pair.right)
        steps.append(StepComparison(path=pair.path, left=ours, right=theirs, is_equal=ours == theirs))
    return json_response(RunComparison(steps=steps))


async def answer_run(conversations: Conversations, request: Request) -> Response:
    """Answer what a run waits for, and go on with it."""
    wanted = parse_request(AnswerRequest, await request.body())
    run = request.path_params['id']
    await conversations.decide(request.scope['owner'], run, read_answer(wanted.answer), wanted.path)
    view = await _read(conversations, request)
    return json_response(TurnModel(run=run, session=view.info.session), 202)


async def stop_run(conversations: Conversations, request: Request) -> Response:
    """Stop a run that is under way. A message, or `resume`, goes on with it."""
    return json_response(Done(ok=await conversations.stop(request.scope['owner'], request.path_params['id'])))


async def resume_run(conversations: Conversations, request: Request) -> Response:
    """Go on with the last turn of a conversation, if it was stopped or has failed."""
    view = await _read(conversations, request)
    one = await conversations.get(request.scope['owner'], view.info.session)
    return json_response(TurnModel(run=await one.finish(), session=view.info.session), 202)


async def fork_run(conversations: Conversations, request: Request) -> Response:
    """Copy a run up to a step to a new one, in a conversation of its own, and go on from there: perhaps after a change,
    with a message, or with another model."""
    wanted = parse_request(ForkRequest, await request.body())
    store, run, user, session = conversations.store, request.path_params['id'], request.scope['owner'], new_session()
    await info_of(store, run, user)
    if (wanted.before is None) == (wanted.edit is None):
        msg = 'give either `before` or `edit`'
        raise BadRequest(msg)
    if wanted.edit is not None:
        new = cast('Json', wanted.value)  # it was JSON
        info = await fork_edited(store, run, wanted.edit, new, user=user, session=session)
    else:
        info = await fork(store, run, wanted.before or 0, user=user, session=session)
    one = await conversations.get(user, session)
    if wanted.model:
        await conversations.choose(one, TurnChoice(model=wanted.model))
    begun = await (one.send(wanted.message, (), info.run) if wanted.message else one.finish())
    return json_response(TurnModel(run=begun, session=session), 202)


async def share_run(conversations: Conversations, request: Request) -> Response:
    """A run as one HTML file, without secrets, to be shared."""
    view = await read_run(conversations.store, request.path_params['id'], user=request.scope['owner'])
    return Response(await run_page(view), media_type='text/html', headers=AS_FILE)


async def remove_run(conversations: Conversations, request: Request) -> Response:
    """Delete a run, with its records."""
    await delete_run(conversations.store, request.path_params['id'], user=request.scope['owner'])
    return json_response(Done())


async def get_blob(conversations: Conversations, request: Request) -> Response:
    """A long value or an attached file of a run, by its digest."""
    view = await _read(conversations, request)
    data = await conversations.store.blob(view.info.run, request.path_params['digest'])
    return Response(data, media_type='application/octet-stream', headers=AS_FILE)


RUN = '/api/runs/{id}'
OPERATIONS = tuple(
    Operation(method=method, path=path, handler=handler, request=request, response=response)
    for method, path, handler, request, response in (
        ('GET', '/api/status', get_status, None, StatusModel),
        ('GET', '/api/events', stream_user, None, bytes),
        ('GET', '/api/conversations', list_conversations, None, ConversationList),
        ('POST', '/api/conversations', create_conversation, None, NewConversation),
        ('POST', '/api/conversations/{id}/turns', take_turn, TurnRequest, TurnModel),
        ('GET', '/api/runs', get_runs, None, RunList),
        ('GET', RUN, get_run, None, RunDetails),
        ('DELETE', RUN, remove_run, None, Done),
        ('GET', f'{RUN}/events', stream_run, None, bytes),
        ('GET', RUN + '/compare/{other}', compare_runs, None, RunComparison),
        ('GET', f'{RUN}/page', share_run, None, bytes),
        ('GET', RUN + '/blobs/{digest}', get_blob, None, bytes),
        ('POST', f'{RUN}/answer', answer_run, AnswerRequest, TurnModel),
        ('POST', f'{RUN}/stop', stop_run, None, Done),
        ('POST', f'{RUN}/resume', resume_run, None, TurnModel),
        ('POST', f'{RUN}/fork', fork_run, ForkRequest, TurnModel),
        *settings_operations.OPERATIONS,
        *fleet_operations.OPERATIONS,
        *research_operations.OPERATIONS,
        *memory_operations.OPERATIONS,
        *library_operations.OPERATIONS,
        *file_operations.OPERATIONS,
    )
)


# The application ------------------------------------------------------------------------------------------------------


OpenConversations = Callable[[], contextlib.AbstractAsyncContextManager[Conversations]]
"""Opens the conversations with all that they need, until they are closed."""


def make_app(settings: HttpSettings, open_conversations: OpenConversations) -> ASGIApp:
    """The service of these conversations, which are opened and closed with it."""
    opened: list[Conversations] = []
    document = openapi.document(OPERATIONS, 'Habilis', error=ProblemModel)
    routes: list[BaseRoute] = [
        Route(operation.path, _endpoint(opened, operation.handler), methods=[operation.method])
        for operation in OPERATIONS
    ]
    routes += [
        Route(path, _endpoint(opened, handler, openai_protocol.error), methods=[method])
        for method, path, handler in openai_protocol.OPERATIONS
    ]
    routes += [
        Route(path, _endpoint(opened, handler), methods=['POST'])
        for path, handler in (('/ag-ui', ag_ui_protocol.run_agent), ('/api/chat', vercel_protocol.chat))
    ]
    routes += [
        Route('/api/health', partial(_show, JSONResponse({'status': 'ok', 'version': __version__}))),
        Route('/api/login', partial(_log_in, settings), methods=['POST']),
        Route('/openapi.json', partial(_show, JSONResponse(document))),
        page_route(),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with open_conversations() as conversations:
            opened.append(conversations)
            resuming = asyncio.create_task(conversations.resume_interrupted())
            sweeping = asyncio.create_task(conversations.close_idle())
            yield
            resuming.cancel()
            sweeping.cancel()
            await asyncio.gather(resuming, sweeping, return_exceptions=True)
            await conversations.close()

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refuse})
    return SafeHeaders(Access(app, settings, open_paths=OPEN_PATHS | page_paths(), refuse=_problem))


def _endpoint(
    opened: list[Conversations],
    handler: Callable[[Conversations, Request], Awaitable[Response]],
    refuse: 'Callable[[int, Exception], Response] | None' = None,
) -> Callable[[Request], Awaitable[Response]]:
    refuse = refuse or _problem

    async def endpoint(request: Request) -> Response:
        try:
            return await handler(opened[0], request)
        except BodyRefused as error:
            return refuse(error.status, error)
        except (HabilisError, BadRequest, ValueError) as error:
            return refuse(_status(error), error)

    return endpoint


def _status(error: Exception) -> int:
    if isinstance(error, RunNotFound | ToolNotFound | WorkspaceFileNotFound):
        return 404
    if isinstance(error, RunBusy):
        return 409
    if isinstance(error, KeyReused):
        return 422
    return 503 if isinstance(error, StoreUnavailable | ModelError) else 400


def _problem(status: int, error: Exception) -> Response:
    problem = ProblemModel(title=type(error).__name__, status=status, detail=str(error))
    return Response(problem.model_dump_json(), status, media_type='application/problem+json')


async def _log_in(settings: HttpSettings, request: Request) -> Response:
    """Keep the token of a browser where its scripts cannot read it."""
    try:
        wanted = parse_request(LoginRequest, await request.body())
    except BodyRefused as error:
        return _problem(error.status, error)
    except ValueError as error:
        return _problem(400, error)
    owner = settings.owner(wanted.token)
    if owner is None:
        return _problem(401, ValueError("this is nobody's token"))
    response = json_response(Done())
    is_secure = request.url.scheme == 'https'  # also behind a proxy that is trusted
    response.set_cookie(COOKIE, wanted.token, COOKIE_SECONDS, httponly=True, samesite='strict', secure=is_secure)
    return response


async def _refuse(request: Request, error: Exception) -> Response:
    """There is no such path, or no such method of it."""
    assert isinstance(error, HTTPException)
    return _problem(error.status_code, ValueError(f'{error.detail}: {request.method} {request.url.path}'))


async def _show(response: Response, _request: Request) -> Response:
    return response


async def _read(conversations: Conversations, request: Request) -> ListedRun:
    info = await info_of(conversations.store, request.path_params['id'], request.scope['owner'])
    return ListedRun(info=info, state=await state_of(conversations.store, info))


def _limit(request: Request) -> int:
    text = request.query_params.get('limit', '100')
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 4):
        msg = f'limit={text[:40]!r} is not a number from 0 to 9999'
        raise BadRequest(msg)
    return int(text)


async def _run(conversations: Conversations, info: RunInfo) -> RunModel:
    totals = await conversations.totals(info)
    return RunModel(
        run=info.run,
        state=await state_of(conversations.store, info),
        kind=info.kind,
        name=info.name,
        title=info.title,
        session=info.session,
        parent=info.parent,
        error=info.error,
        created=info.created,
        updated=info.updated,
        steps=totals.steps,
        tokens=totals.usage.tokens,
        cost=totals.usage.cost,
        seconds=totals.seconds,
    )
