"""`@step` and `@flow`: functions whose results are recorded, so that a resumed run does not call them again."""

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import MethodType
from typing import Concatenate, ParamSpec, TypeVar, Unpack, cast, overload

from habilis.core.background_loop import run_blocking, wait_for_result
from habilis.flows import runs
from habilis.flows.context import NewOutput
from habilis.flows.contract import FlowDefinitionError, FlowError, StepOptions
from habilis.flows.execution import call_of, run_body, run_in_step, run_step
from habilis.flows.recorded import NO_NAMES, GivenOptions, RecordedFunction, check_timeout, checked_options
from habilis.flows.runs import FlowRun
from habilis.journal import OnChange, Store, current_scope, recording_scope
from habilis.sandbox.host.functions import is_async
from habilis.tools.tool import Tool, caller_names

P = ParamSpec('P')
Q = ParamSpec('Q')
R = TypeVar('R')
R_co = TypeVar('R_co', covariant=True)
S = TypeVar('S')


class FlowStep(RecordedFunction[P, R_co]):
    """A function whose calls inside a flow are recorded steps. Outside of a flow it is only called."""

    def __init__(
        self,
        function: Callable[P, Awaitable[R_co] | R_co],
        *,
        name: str | None = None,
        options: StepOptions | None = None,
        local_names: Mapping[str, object] = NO_NAMES,
    ) -> None:
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            msg = f'{function.__name__} cannot be a step, because it is a generator: return a list'
            raise FlowDefinitionError(msg)
        super().__init__(function, name=name, options=options or StepOptions(), local_names=local_names)

    def __repr__(self) -> str:
        return f'<step {self.name}>'

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:  # no docstring: a tool shows the function's
        scope = recording_scope()
        if scope is None:
            return await call_of(self.function, *args, **kwargs)()
        bound = self.inputs.bind(args, kwargs)
        key, once, output = self.inputs.key(bound), not self.options.idempotent, NewOutput(self.name)
        value: R_co = await scope.step(
            self.name,
            functools.partial(run_step, self, bound, key),
            key=key,
            codec=self.inputs.result,
            opening=self.inputs.opening(bound) if once else None,
            once=once,
        )
        output.add(value)
        return value

    @overload
    def __get__(self, instance: None, owner: type) -> 'FlowStep[P, R_co]': ...
    @overload
    def __get__(
        self: 'FlowStep[Concatenate[S, Q], R_co]', instance: S, owner: type | None = None
    ) -> 'FlowStep[Q, R_co]': ...
    def __get__(self, instance: object, owner: type | None = None) -> 'FlowStep[..., R_co]':
        """The step bound to an instance, like a method."""
        if instance is None:
            return self
        bound = MethodType(self.function, instance)
        return FlowStep[..., R_co](bound, name=self.name, options=self.options, local_names=self._local_names)


class Flow(RecordedFunction[P, R_co]):
    """An `async def` whose steps are recorded. Called inside another flow it is a step of that flow's run."""

    def __init__(
        self,
        function: Callable[P, Awaitable[R_co]],
        *,
        name: str | None = None,
        timeout: float | None = None,
        local_names: Mapping[str, object] = NO_NAMES,
    ) -> None:
        super().__init__(function, name=name, options=StepOptions(timeout=timeout), local_names=local_names)
        if not is_async(function):
            msg = f'{self.name} cannot be a flow: define it with `async def`'
            raise FlowDefinitionError(msg)

    def __repr__(self) -> str:
        return f'<flow {self.name}>'

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:  # no docstring: a tool shows the function's
        bound = self.inputs.bind(args, kwargs)
        scope = recording_scope()
        if scope is None:
            return await runs.drive(self, bound, await runs.create(self, bound))
        key, output = self.inputs.key(bound), NewOutput(self.name)
        work = functools.partial(run_body, self, bound)
        value: R_co = await scope.step(self.name, work, key=key, codec=self.inputs.result, opening=True)
        output.add(value)
        return value

    async def start(
        self,
        *args: object,
        journal: Store | str | None = None,
        user: str = '',
        session: str = '',
        run_id: str | None = None,
        title: str = '',
        **kwargs: object,
    ) -> FlowRun[R_co]:
        """Start a run in the background and return at once; `await run.result()` waits for its result.

        Args:
            args: arguments of the flow, like `kwargs`. Pass by position what has the name of a parameter below.
            journal: a store or its URL; None for the default.
            user: the user that the run belongs to.
            session: the session of that user.
            run_id: the id of the run; None to generate one.
            title: one line for lists of runs; by default the arguments.
        """
        bound = self.inputs.bind(args, kwargs)
        active = await runs.create(self, bound, journal=journal, user=user, session=session, run_id=run_id, title=title)
        return runs.start(self, bound, active)

    async def resume(
        self, run_id: str, *, journal: Store | str | None = None, user: str | None = None, on_change: OnChange = 'fail'
    ) -> R_co:
        """Resume a run at its first unrecorded step, at every level; failed steps are retried.

        Args:
            run_id: the id of the run.
            journal: the store of the run, or its URL; None for the default.
            user: the user that the run must belong to; None for any.
            on_change: what to do if the code no longer matches the record.
        """
        return await runs.resume(self, run_id, journal=journal, user=user, on_change=on_change)

    def resume_sync(
        self, run_id: str, *, journal: Store | str | None = None, user: str | None = None, on_change: OnChange = 'fail'
    ) -> R_co:
        """`resume` without `await`."""
        return run_blocking(self.resume(run_id, journal=journal, user=user, on_change=on_change))

    async def reset(self, run_id: str, *, journal: Store | str | None = None, user: str | None = None) -> None:
        """Discard the recorded steps of a run, so that the next resume starts again with its arguments."""
        await runs.reset(run_id, journal=journal, user=user)

    def run_sync(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it without `await`: in scripts, notebooks, and in steps that are plain functions."""
        if current_scope() is not None:
            msg = f'{self.name}.run_sync was called inside a flow, which would block itself: await the flow instead'
            raise FlowError(msg)
        future = run_in_step(lambda: self(*args, **kwargs))
        return wait_for_result(future) if future is not None else run_blocking(self(*args, **kwargs))

    def as_tool(self) -> Tool[P, R_co]:
        """The flow as a tool of an agent. It is safe to call again after a crash, because its steps are recorded."""
        return Tool[P, R_co](cast('Callable[P, R_co]', self), name=self.name)


# Decorators -----------------------------------------------------------------------------------------------------------


@overload
def step(function: Callable[P, Awaitable[R]], /) -> FlowStep[P, R]: ...
@overload
def step(function: Callable[P, R], /) -> FlowStep[P, R]: ...
@overload
def step(
    *,
    name: str | None = None,
    retries: int = 0,
    retry_delay: float = 0.5,
    timeout: float | None = None,
    idempotent: bool = True,
) -> 'StepMaker': ...
def step(
    function: Callable[..., object] | None = None, /, *, name: str | None = None, **options: Unpack[GivenOptions]
) -> object:
    """Make a function a step: inside a flow its result is recorded. A plain function runs on a thread.

    Args:
        function: `async def` or `def`; the step is awaited in both cases.
        name: its name in the record; by default the name of the function.
        retries: maximum number of attempts after the first.
        retry_delay: seconds before the first retry; doubled before each further one.
        timeout: seconds for one attempt, then `StepTimeout`. A plain function keeps running, and its result is ignored.
        idempotent: False: never started twice; after a crash in the middle a person is asked.
    """
    local_names = caller_names(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    maker = StepMaker(name, checked_options(**options), local_names)
    return maker if function is None else maker(function)


class StepMaker:
    """The decorator that `step(…)` returns."""

    def __init__(self, name: str | None, options: StepOptions, local_names: Mapping[str, object]) -> None:
        self._name = name
        self._options = options
        self._local_names = local_names

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> FlowStep[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FlowStep[P, R]: ...
    def __call__(self, function: Callable[..., object], /) -> object:
        """Make the function a step."""
        return FlowStep[..., object](function, name=self._name, options=self._options, local_names=self._local_names)


@overload
def flow(function: Callable[P, Awaitable[R]], /) -> Flow[P, R]: ...
@overload
def flow(
    *, name: str | None = None, timeout: float | None = None
) -> Callable[[Callable[P, Awaitable[R]]], Flow[P, R]]: ...
def flow(
    function: Callable[..., Awaitable[object]] | None = None,
    /,
    *,
    name: str | None = None,
    timeout: float | None = None,
) -> object:
    """Make an `async def` a flow: its steps are recorded, and it can be resumed.

    Args:
        function: the `async def`.
        name: its name in the record; by default the name of the function.
        timeout: seconds for the whole flow, from its start or resume; then `StepTimeout`.
    """
    local_names = caller_names(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    check_timeout(timeout)

    def make(target: Callable[..., Awaitable[object]]) -> Flow[..., object]:
        return Flow[..., object](target, name=name, timeout=timeout, local_names=local_names)

    return make if function is None else make(function)
