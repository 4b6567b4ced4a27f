"""Research over HTTP: begin one, watch its plan, change it, read its report."""

from starlette.requests import Request
from starlette.responses import Response

from habilis.research import PlanChange
from habilis.server.assistant.conversations import API_SESSION, Conversations
from habilis.server.assistant.models import TurnModel, json_response
from habilis.server.assistant.researches import NewResearch, PlanChangeRequest, ResearchModel
from habilis.server.models import Done, parse_request
from habilis.server.operations import AS_FILE

RESEARCH = '/api/runs/{id}/research'


async def start_research(conversations: Conversations, request: Request) -> Response:
    """Begin a research on the web: plan, read, plan again, and write a report that cites its sources."""
    wanted = parse_request(NewResearch, await request.body())
    user = request.scope['owner']
    one = await conversations.get(user, API_SESSION)
    run = await conversations.researches.start(one.session.model, user, wanted)
    return json_response(TurnModel(run=run, session=''), 202)


async def get_research(conversations: Conversations, request: Request) -> Response:
    """The plan of a research, what was found for each sub-goal, and the sources."""
    return json_response(await conversations.researches.show(request.scope['owner'], request.path_params['id']))


async def change_research(conversations: Conversations, request: Request) -> Response:
    """Add a sub-goal, or drop one. The next planning obeys."""
    wanted = parse_request(PlanChangeRequest, await request.body())
    change = PlanChange(add=wanted.add.strip(), drop=wanted.drop)
    await conversations.researches.change(request.scope['owner'], request.path_params['id'], change)
    return json_response(Done())


async def resume_research(conversations: Conversations, request: Request) -> Response:
    """Go on with a research that was stopped, or whose server was killed."""
    user = request.scope['owner']
    one = await conversations.get(user, API_SESSION)
    run = await conversations.researches.resume(one.session.model, user, request.path_params['id'])
    return json_response(TurnModel(run=run, session=''), 202)


async def get_report(conversations: Conversations, request: Request) -> Response:
    """The report so far as one HTML file, in which every citation opens its passage."""
    user, run = request.scope['owner'], request.path_params['id']
    return Response(await conversations.researches.report(user, run), media_type='text/html', headers=AS_FILE)


OPERATIONS = (
    ('POST', '/api/research', start_research, NewResearch, TurnModel),
    ('GET', RESEARCH, get_research, None, ResearchModel),
    ('POST', RESEARCH, change_research, PlanChangeRequest, Done),
    ('POST', f'{RESEARCH}/resume', resume_research, None, TurnModel),
    ('GET', f'{RESEARCH}/report', get_report, None, bytes),
)
