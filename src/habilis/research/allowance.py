"""`Allowance`: the calls and tokens that a part of a research may still use.

Branches that run at the same time have shares of their own: whether one may go on must not depend on how fast the
others are, or a resumed run would take another way.
"""

from habilis.research.contract import Effort, Spent


class Allowance:
    """Calls and tokens that are left."""

    def __init__(self, calls: int, tokens: int) -> None:
        self._calls = calls
        self._tokens = tokens

    @property
    def is_left(self) -> bool:
        """Whether another call may be made."""
        return self._calls > 0 and self._tokens > 0

    def spend(self, spent: Spent) -> None:
        """Count what was used."""
        self._calls -= spent.calls
        self._tokens -= spent.tokens

    def take(self, calls: int, tokens: int) -> 'Allowance':
        """A part of this one; give back what is left of it with `give_back`."""
        part = Allowance(max(0, min(calls, self._calls)), max(0, min(tokens, self._tokens)))
        self._calls -= part._calls
        self._tokens -= part._tokens
        return part

    def share(self, parts: int) -> 'list[Allowance]':
        """All of it, in equal parts."""
        calls, tokens = self._calls // max(1, parts), self._tokens // max(1, parts)
        return [self.take(calls, tokens) for _ in range(parts)]

    def give_back(self, parts: 'list[Allowance]') -> None:
        """Add what is left of these parts."""
        for part in parts:
            self._calls += part._calls
            self._tokens += part._tokens


def allowances(effort: Effort) -> tuple[Allowance, Allowance]:
    """What may be used for reading, and what is kept for writing."""
    everything = Allowance(effort.calls, effort.tokens)
    writing = everything.take(effort.writing_calls, effort.tokens // 4)
    return everything, writing
