"""What a person has approved beyond one call; see `Approval.scope`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from habilis.core.approval import Approval
from habilis.tools.contract import ApprovalRequest

_OTHER_COMMANDS = re.compile(r'[;&|<>$`(){}\\\n]|\.\.')
"""What may make another command, or another path, of one that starts harmlessly."""


@dataclass(frozen=True, kw_only=True)
class CallGrant:
    """Calls that a person has approved for the rest of a conversation."""

    tool: str = ''
    """Empty for all tools."""

    prefix: str = ''

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether this call is one of them."""
        return self.tool in ('', request.tool) and (not self.prefix or _starts_with(request, self.prefix))


class Grants:
    """The grants of a conversation, and those of the cell under way."""

    def __init__(self, lasting: Iterable[CallGrant] = ()) -> None:
        self.lasting = list(lasting)
        self._in_cell: dict[str, int] = {}
        """How many more calls of a tool this cell may make."""

    def start_cell(self) -> None:
        """Forget what was approved for the cell before."""
        self._in_cell.clear()

    def add(self, tool: str, answer: Approval) -> None:
        """Keep what an answer says beyond the call that it is about."""
        if not answer.approved:
            return
        if answer.scope == 'cell':
            self._in_cell[tool] = answer.calls - 1
        elif answer.scope != 'once':
            grant = CallGrant(tool=tool if answer.scope == 'always' else '', prefix=answer.prefix)
            self.lasting += [] if grant in self.lasting else [grant]

    def take(self, request: ApprovalRequest) -> bool:
        """Whether a call is approved already. Counts it, if that is so for the cell alone."""
        if any(grant.covers(request) for grant in self.lasting):
            return True
        left = self._in_cell.get(request.tool, 0)
        self._in_cell[request.tool] = max(0, left - 1)
        return left > 0


def _starts_with(request: ApprovalRequest, prefix: str) -> bool:
    """Whether the first argument starts with these words, or folders, and does nothing else beside."""
    first = next(iter(request.arguments.values()), None)
    if not isinstance(first, str) or not first.startswith(prefix):
        return False
    rest = first[len(prefix) :]
    return (not rest or prefix[-1] in ' /' or rest[0] in ' /') and not _OTHER_COMMANDS.search(rest)
