"""Counts what a run uses, and ends it by name at a limit."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Generator

from habilis.agent.contract import LOCAL_SECONDS, Ended, RunLimits
from habilis.models.contract import Usage
from habilis.sandbox.contract import ToolCall
from habilis.tools import Approval, ApprovalRequest, Approve, Deny, GateCall, attempts


class Meter:
    """Counts what a run uses. Time counts while it works, not while it waits for a person or to be resumed."""

    def __init__(self, limits: RunLimits, *, local: bool = False, delegate: str = '') -> None:
        """A meter.

        Args:
            limits: the limits of the run.
            local: the model runs on this machine, and has a time limit by default.
            delegate: name of the tool that starts subagents.
        """
        self.limits = limits
        self._delegate = delegate
        self._helpers = 0
        self._local = local
        self.seconds = 0.0
        """How long the run has worked."""

        self._calls = 0
        self._before = (0, 0.0, 0, 0, 0.0)
        self._calls_refused = False
        self._deadline: float | None = None
        self._timeout: asyncio.Timeout | None = None
        self.waited = 0.0
        """How long the step has waited for people."""

        self.after_replay: RunLimits | None = None
        """For what a run that is resumed does after its record."""

    def limit_reached(self, steps: int, usage: Usage) -> Ended | None:
        """The limit of which nothing is left."""
        limits = self.limits
        bounds: tuple[tuple[Ended, float | None], ...] = (
            ('max_steps', limits.steps),
            ('max_seconds', self.max_seconds),
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
        if call.tool == self._delegate:
            most = self.limits.helpers
            if most is not None and self._helpers >= most:
                return Deny(f'the run may start {most} subagents, and has; do the rest here')
            self._helpers += 1
        return None

    def recall(self, call: ToolCall) -> None:
        """Count a call that an earlier process has made."""
        if call.decision != 'invalid':
            self.gate(GateCall(id=call.id, tool=call.tool, arguments=call.arguments or {}, side=call.side))

    def go_live(self, steps: int, usage: Usage) -> None:
        """The record is at its end, perhaps in the middle of a step: what is to come has its own limits."""
        limits, self.after_replay = self.after_replay, None
        if limits is not None:
            self.extend(limits, steps, usage)

    def seconds_left(self) -> float | None:
        """For what comes now."""
        limit = self.max_seconds
        self._deadline, self._timeout = None, None
        if limit is None:
            return None
        left = max(0.0, limit - (self.seconds - self._before[1]))
        self._deadline = time.perf_counter() + left
        return left

    def start_clock(self, timeout: asyncio.Timeout) -> None:
        """Limit the time of a step from now on."""
        left = self.seconds_left()
        self._timeout = timeout
        timeout.reschedule(None if left is None else _time_in(left))

    def uncounted(self, approve: Approve | None) -> Approve | None:
        """Asks a person, without counting the time that the person takes."""

        async def ask(request: ApprovalRequest) -> Approval:
            assert approve is not None
            with self._stopped_clock():
                return Approval.of(await attempts.call(functools.partial(approve, request)))

        return None if approve is None else ask

    @contextlib.contextmanager
    def _stopped_clock(self) -> Generator[None]:
        started, deadline, timeout = time.perf_counter(), self._deadline, self._timeout
        self._reschedule(timeout, None)
        try:
            yield
        finally:
            waited = time.perf_counter() - started
            self.waited += waited
            if deadline is not None and timeout is self._timeout:
                self._deadline = deadline + waited
                self._reschedule(timeout, _time_in(self._deadline - time.perf_counter()))

    def _reschedule(self, timeout: asyncio.Timeout | None, when: float | None) -> None:
        if timeout is not None:
            with contextlib.suppress(RuntimeError):  # the step has ended meanwhile
                timeout.reschedule(when)

    @property
    def max_seconds(self) -> float | None:
        """The time limit; None if there is none."""
        seconds = self.limits.seconds
        if seconds == 'default':
            return LOCAL_SECONDS if self._local else None
        return seconds

    def is_time_over(self) -> bool:
        """Whether the time of the step has passed, and not somebody else's."""
        return self._deadline is not None and time.perf_counter() >= self._deadline - 0.001

    def add(self, seconds: float) -> None:
        """A step took this long."""
        self.seconds += max(0.0, seconds - self.waited)
        self.waited = 0.0

    def extend(self, limits: RunLimits, steps: int, usage: Usage) -> None:
        """For a run that goes on: these limits count from here."""
        self.limits = limits
        self._before = self._used(steps, usage)
        self._calls = self._helpers = 0
        self._calls_refused = False

    def _used(self, steps: int, usage: Usage) -> tuple[int, float, int, int, float]:
        return steps, self.seconds, usage.requests, usage.tokens, usage.cost or 0.0


def _time_in(seconds: float) -> float:
    """The time on the clock of the event loop."""
    return asyncio.get_running_loop().time() + seconds
