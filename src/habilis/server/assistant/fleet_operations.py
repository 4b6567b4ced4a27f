"""Many runs in a few figures: throughput, queue, failures, cost, the slowest."""

import time
from collections import Counter

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from habilis.journal.contract import RunCount
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import json_response
from habilis.server.operations import BadRequest

INTERVALS = 60
MAX_HOURS = 24 * 366
ENDED = frozenset({'done', 'failed', 'stopped'})


class SlowRun(BaseModel):
    """A run that was executed long."""

    run: str
    title: str
    status: str
    seconds: float
    cost: float


class FleetModel(BaseModel):
    """Many runs in a few figures."""

    interval: float
    """Seconds of each interval of `ended`."""

    ended: list[int]
    """How many ended, by interval, the latest last."""

    states: dict[str, int]
    failures: dict[str, int]
    """Those without an answer, by the limit, the type of the error or the state; the most frequent first."""

    cost: float
    slowest: list[SlowRun]


async def get_fleet(conversations: Conversations, request: Request) -> Response:
    """The runs of the user that are not over, and those that ended in the last hours (`hours`: 1), in a few figures."""
    hours = _hours(request.query_params.get('hours', '1'))
    interval = hours * 3600 / INTERVALS
    since = time.time() - hours * 3600
    found = await conversations.store.figures(user=request.scope['owner'], since=since, interval=interval)
    ended, states, failures = Counter[int](), Counter[str](), Counter[str]()
    for one in found.counts:
        states[one.status] += one.runs
        if one.status in ENDED:
            ended[min(one.interval, INTERVALS - 1)] += one.runs
        if _is_failure(one):
            failures[one.ended or one.status] += one.runs
    fleet = FleetModel(
        interval=interval,
        ended=[ended[number] for number in range(INTERVALS)],
        states=states,
        failures=dict(failures.most_common()),
        cost=sum(one.cost for one in found.counts),
        slowest=[SlowRun.model_validate(one, from_attributes=True) for one in found.slowest],
    )
    return json_response(fleet)


OPERATIONS = (('GET', '/api/fleet', get_fleet, None, FleetModel),)


def _hours(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_HOURS):
        msg = f'hours={text[:40]!r} is not a number from 1 to {MAX_HOURS}'
        raise BadRequest(msg)
    return int(text)


def _is_failure(one: RunCount) -> bool:
    return one.status in {'failed', 'stopped'} or (one.status == 'done' and one.ended not in {'', 'answer'})
