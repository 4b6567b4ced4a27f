"""What a person has approved beyond one call; see `Approval.scope`."""

import re
from collections import Counter
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
    """The answers that hold in a conversation, and those of the cell under way."""

    def __init__(self, lasting: Iterable[CallGrant] = ()) -> None:
        self.lasting = list(lasting)
        self.approved = Counter[str]()
        """Calls of each tool that were approved in this cell."""

        self._allowed: dict[str, int] = {}
        """How many calls of a tool this cell may make, those before included."""

        self._refusals: dict[str, Approval] = {}

    def start_cell(self) -> None:
        """Forget what was answered for the cell before."""
        self.approved.clear()
        self._allowed.clear()
        self._refusals.clear()

    def add(self, tool: str, answer: Approval) -> None:
        """Keep what an answer says, also beyond the call that it is about."""
        if not answer.approved:
            if answer.scope == 'cell':
                self._refusals[tool] = answer
            return
        self.approved[tool] += 1
        if answer.scope == 'cell':
            self._allowed[tool] = self.approved[tool] - 1 + answer.calls
        elif answer.scope != 'once':
            grant = CallGrant(tool=tool if answer.scope == 'always' else '', prefix=answer.prefix)
            self.lasting += [] if grant in self.lasting else [grant]

    def refusal(self, request: ApprovalRequest) -> Approval | None:
        """The answer that refuses this call already."""
        return self._refusals.get(request.tool)

    def take(self, request: ApprovalRequest) -> bool:
        """Whether a call is approved already. Counts it then."""
        is_lasting = any(grant.covers(request) for grant in self.lasting)
        if not is_lasting and self.approved[request.tool] >= self._allowed.get(request.tool, 0):
            return False
        self.approved[request.tool] += 1
        return True

    def allowed(self, request: ApprovalRequest) -> int | None:
        """How many calls of this tool the cell may make; None if an answer for the conversation covers this one."""
        is_lasting = any(grant.covers(request) for grant in self.lasting)
        return None if is_lasting else self._allowed.get(request.tool, 0)


def _starts_with(request: ApprovalRequest, prefix: str) -> bool:
    """Whether the first argument starts with these words, or folders, and does nothing else beside."""
    first = next(iter(request.arguments.values()), None)
    if not isinstance(first, str) or not first.startswith(prefix):
        return False
    rest = first[len(prefix) :]
    return (not rest or prefix[-1] in ' /' or rest[0] in ' /') and not _OTHER_COMMANDS.search(rest)
