"""Counts what a run uses, and ends it by name at a limit."""

import time

from habilis.agent.contract import LOCAL_SECONDS, Ended, RunLimits
from habilis.models.contract import Usage
from habilis.sandbox.contract import ToolCall
from habilis.tools import Deny, GateCall


class Meter:
    """Counts what a run uses. Time counts while it works, not while it waits to be resumed."""

    def __init__(self, limits: RunLimits, *, local: bool = False) -> None:
        """`local`: the model runs on this machine, and has a time limit by default."""
        self.limits = limits
        self._local = local
        self.seconds = 0.0
        """How long the run has worked."""

        self._calls = 0
        self._before = (0, 0.0, 0, 0, 0.0)
        self._calls_refused = False
        self._deadline: float | None = None
        self.after_replay: RunLimits | None = None
        """For what a run that is resumed does after its record."""

    def limit_reached(self, steps: int, usage: Usage) -> Ended | None:
        """The limit of which nothing is left."""
        limits = self.limits
        bounds: tuple[tuple[Ended, float | None], ...] = (
            ('max_steps', limits.steps),
            ('max_seconds', self._max_seconds),
            ('max_requests', limits.requests),
            ('max_tokens', limits.tokens),
            ('max_cost', limits.cost),
        )
        for (ended, limit), used, before in zip(bounds, self._used(steps, usage), self._before, strict=True):
            if limit is not None and used - before >= limit:
                return ended
        return 'max_tool_calls' if self._calls_refused else None

    def gate(self, call: GateCall) -> Deny | None:
        """Counts tool calls; the first gate of every run."""
        limit = self.limits.tool_calls
        if limit is not None and self._calls >= limit:
            self._calls_refused = True
            return Deny(f'the run may call {limit} tools, and has')
        self._calls += 1
        return None

    def recall(self, call: ToolCall) -> None:
        """Count a call that an earlier process has made."""
        if call.decision != 'invalid':
            self.gate(GateCall(id=call.id, tool=call.name, arguments=call.arguments or {}, side=call.side))

    def go_live(self, steps: int, usage: Usage) -> None:
        """The record is at its end, perhaps in the middle of a step: what is to come has its own limits."""
        limits, self.after_replay = self.after_replay, None
        if limits is not None:
            self.extend(limits, steps, usage)

    def seconds_left(self) -> float | None:
        """For the step to come."""
        limit = self._max_seconds
        if limit is None:
            self._deadline = None
            return None
        left = max(0.0, limit - (self.seconds - self._before[1]))
        self._deadline = time.perf_counter() + left
        return left

    @property
    def _max_seconds(self) -> float | None:
        seconds = self.limits.seconds
        if seconds == 'default':
            return LOCAL_SECONDS if self._local else None
        return seconds

    def is_time_over(self) -> bool:
        """Whether the time of the step has passed, and not somebody else's."""
        return self._deadline is not None and time.perf_counter() >= self._deadline - 0.001

    def add(self, seconds: float) -> None:
        """A step took this long."""
        self.seconds += seconds

    def extend(self, limits: RunLimits, steps: int, usage: Usage) -> None:
        """For a run that goes on: these limits count from here."""
        self.limits = limits
        self._before = self._used(steps, usage)
        self._calls = 0
        self._calls_refused = False

    def _used(self, steps: int, usage: Usage) -> tuple[int, float, int, int, float]:
        return steps, self.seconds, usage.requests, usage.tokens, usage.cost or 0.0
