"""Answers of people to questions about tool calls, as the journal has them."""

from collections.abc import Awaitable, Callable

from habilis.agent.durable.records import APPROVE
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.journal import Record
from habilis.journal.index import Index, name_of, parent_of
from habilis.tools.grants import Grants


def recorded_answer(written: Json) -> Approval:
    """A recorded answer; one that cannot be read is a no."""
    try:
        return Approval.from_json(written)
    except ValueError:
        return Approval(approved=False)


async def add_grants(grants: Grants, index: Index, value: Callable[[Record], Awaitable[Json]], path: str) -> None:
    """Add what was approved beyond one call: the answers directly below this path, of a cell or an agent."""
    for inside, entry in index.inside(path):
        name = name_of(inside)
        if parent_of(inside) == path and name.startswith(APPROVE) and entry.answered is not None:
            tool = name.removeprefix(APPROVE).partition('(')[0]
            grants.add(tool, recorded_answer(await value(entry.answered)))
