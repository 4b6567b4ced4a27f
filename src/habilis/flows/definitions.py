"""`@step` and `@flow`: functions whose results are recorded, so that they need not be called again."""

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from habilis.core.background_loop import run_blocking, wait_for_result
from habilis.flows import bodies
from habilis.flows.attempting import is_async
from habilis.flows.contract import FlowDefinitionError, FlowError, StepOptions
from habilis.flows.inputs import Inputs
from habilis.journal import OnChange, Store, current_scope, scope_here
from habilis.tools.tool import Tool

if TYPE_CHECKING:
    from habilis.flows.running import Run

P = ParamSpec('P')
Q = ParamSpec('Q')
R = TypeVar('R')
S = TypeVar('S')
_NO_NAMES: Mapping[str, object] = {}
_MARKS = frozenset('/#~(')
"""They have a meaning in the paths of a journal."""


class Recorded(Generic[P, R]):
    """A function whose calls are recorded: what steps and flows have in common."""

    __name__: str

    def __init__(self, function: Callable[P, Any], *, name: str | None, local_names: Mapping[str, object]) -> None:
        self.function = function
        """As it was written; to call it unrecorded."""

        self.name = _checked_name(name or str(getattr(function, '__name__', '')), function)
        self._local_names = local_names
        functools.update_wrapper(self, function, updated=())
        if sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError

    @functools.cached_property
    def inputs(self) -> Inputs:
        """Its parameters and result; read when it is first called, so that it may be defined before its types."""
        return Inputs(self.name, self.function, self._local_names)


class Step(Recorded[P, R]):
    """A function that is a step of the flow it is called in; outside of one it is just the function, to be awaited."""

    def __init__(
        self,
        function: Callable[P, Any],
        *,
        name: str | None = None,
        options: StepOptions | None = None,
        local_names: Mapping[str, object] = _NO_NAMES,
    ) -> None:
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            msg = f'{function.__name__} cannot be a step: it gives values one by one; return them as a list'
            raise FlowDefinitionError(msg)
        super().__init__(function, name=name, local_names=local_names)
        self.options = options or StepOptions()

    def __repr__(self) -> str:
        return f'<step {self.name}>'

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # no text here: a tool shows that of the function
        return await bodies.take_step(self, args, kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> 'Step[P, R]': ...
    @overload
    def __get__(self: 'Step[Concatenate[S, Q], R]', instance: S, owner: type | None = None) -> 'Step[Q, R]': ...
    def __get__(self, instance: object, owner: type | None = None) -> 'Step[..., Any]':
        """The step of one instance, as for any method."""
        if instance is None:
            return self
        bound = MethodType(self.function, instance)
        return Step[..., Any](bound, name=self.name, options=self.options, local_names=self._local_names)


class Flow(Recorded[P, R]):
    """An `async def` whose steps are recorded. Called inside another flow it is a part of that one's run."""

    def __init__(
        self,
        function: Callable[P, Awaitable[R]],
        *,
        name: str | None = None,
        timeout: float | None = None,
        local_names: Mapping[str, object] = _NO_NAMES,
    ) -> None:
        super().__init__(function, name=name, local_names=local_names)
        if not is_async(function):
            msg = f'{self.name} cannot be a flow: make it an `async def`'
            raise FlowDefinitionError(msg)
        self.timeout = timeout

    def __repr__(self) -> str:
        return f'<flow {self.name}>'

    @property
    def target(self) -> str:
        """Where other processes find it: `module:name`."""
        return f'{self.function.__module__}:{self.function.__qualname__}'

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # no text here: a tool shows that of the function
        bound = self.inputs.bind(args, kwargs)
        scope = scope_here()
        if scope is not None:
            return await bodies.take_flow(self, scope, bound)
        from habilis.flows.running import begin, drive

        return await drive(self, bound, await begin(self, bound))

    async def start(
        self,
        *args: object,
        journal: Store | str | None = None,
        user: str = '',
        session: str = '',
        run_id: str | None = None,
        **kwargs: object,
    ) -> 'Run[R]':
        """Begin a run and come back at once: `await run.result()` waits for its end.

        Args:
            args: of the flow, as `kwargs` are; by position where a parameter has the name of one of these here.
            journal: a store, or the address of one; None for the default.
            user: whose run it is.
            session: which of the user's sessions it belongs to.
            run_id: a name for the run; None to make one.
        """
        from habilis.flows.running import begin, run_of

        bound = self.inputs.bind(args, kwargs)
        return run_of(self, bound, await begin(self, bound, journal=journal, user=user, session=session, run_id=run_id))

    async def resume(
        self, run_id: str, *, journal: Store | str | None = None, user: str | None = None, on_change: OnChange = 'fail'
    ) -> R:
        """Go on with a run at its first unsaved step, at every level; a step that failed is tried again.

        Args:
            run_id: its name.
            journal: the store that has it, or its address; None for the default.
            user: whose run it must be.
            on_change: what to do where the code no longer does what the record says.
        """
        from habilis.flows.running import resume

        return await resume(self, run_id, journal=journal, user=user, on_change=on_change)

    def resume_sync(
        self, run_id: str, *, journal: Store | str | None = None, user: str | None = None, on_change: OnChange = 'fail'
    ) -> R:
        """`resume` without `await`."""
        return run_blocking(self.resume(run_id, journal=journal, user=user, on_change=on_change))

    async def reset(self, run_id: str, *, journal: Store | str | None = None, user: str | None = None) -> None:
        """Forget the steps of a run, so that the next resume begins with what it was given."""
        from habilis.flows.running import reset

        await reset(run_id, journal=journal, user=user)

    def run_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it without `await`: in scripts, in notebooks, and in a step that is a plain function."""
        if current_scope() is not None:
            msg = f'{self.name} was called without await inside a flow, which would wait for itself: await it instead'
            raise FlowError(msg)
        elsewhere = bodies.on_its_loop(lambda: self(*args, **kwargs))
        return wait_for_result(elsewhere) if elsewhere is not None else run_blocking(self(*args, **kwargs))

    def as_tool(self) -> Tool[P, R]:
        """For an agent. It may be called again after a crash: its steps are recorded."""
        return Tool[P, R](cast('Callable[P, R]', self), name=self.name)


# Decorators -----------------------------------------------------------------------------------------------------------


@overload
def step(function: Callable[P, Awaitable[R]], /) -> Step[P, R]: ...
@overload
def step(function: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    *,
    name: str | None = None,
    retries: int = 0,
    retry_delay: float = 0.5,
    timeout: float | None = None,
    idempotent: bool = True,
) -> 'StepMaker': ...
def step(function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Make a function a step: inside a flow its result is recorded. A plain function runs on a thread.

    Args:
        function: `async def` or `def`; always to be awaited.
        name: in the record, instead of the function's own.
        retries: so many more attempts after one that failed.
        retry_delay: seconds before the second attempt; doubled before each further one.
        timeout: seconds for one attempt, then `StepTimeout`. A plain function then goes on, unheard.
        idempotent: False: never begun a second time; after a crash in the middle a person is asked.
    """
    local_names = _caller_names(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    maker = StepMaker(name, checked_options(**options), local_names)
    return maker if function is None else maker(function)


class StepMaker:
    """`@step(…)`, before it is given its function."""

    def __init__(self, name: str | None, options: StepOptions, local_names: Mapping[str, object]) -> None:
        self._name = name
        self._options = options
        self._local_names = local_names

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Step[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """The step of this function."""
        return Step[..., Any](function, name=self._name, options=self._options, local_names=self._local_names)


@overload
def flow(function: Callable[P, Awaitable[R]], /) -> Flow[P, R]: ...
@overload
def flow(
    *, name: str | None = None, timeout: float | None = None
) -> Callable[[Callable[P, Awaitable[R]]], Flow[P, R]]: ...
def flow(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, timeout: float | None = None
) -> Any:
    """Make an `async def` a flow: its steps are recorded, and it can be resumed.

    Args:
        function: the flow, in plain Python.
        name: in the record, instead of the function's own.
        timeout: seconds for the flow as a whole, from when it is begun or resumed; then `StepTimeout`.
    """
    local_names = _caller_names(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    _check_seconds('timeout', timeout)

    def make(target: Callable[..., Any]) -> Flow[..., Any]:
        return Flow[..., Any](target, name=name, timeout=timeout, local_names=local_names)

    return make if function is None else make(function)


def checked_options(**given: Any) -> StepOptions:
    """Options of a step. Raises `FlowDefinitionError` for those that make no sense."""
    options = StepOptions(**given)
    _check_seconds('timeout', options.timeout)
    problem = ''
    if not _is_count(options.retries):
        problem = f'retries={options.retries!r}: give a whole number, 0 or more'
    elif not isinstance(cast('object', options.retry_delay), (int, float)) or not options.retry_delay >= 0:
        problem = f'retry_delay={options.retry_delay!r}: give seconds, 0 or more'
    elif options.retries and not options.idempotent:
        problem = 'retries repeat a step, and idempotent=False says that this does harm: choose one'
    if problem:
        raise FlowDefinitionError(problem)
    return options


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_seconds(what: str, value: object) -> None:
    if value is not None and not (isinstance(value, (int, float)) and value > 0):
        msg = f'{what}={value!r}: give seconds, more than 0, or None'
        raise FlowDefinitionError(msg)


def _checked_name(name: str, function: object) -> str:
    if not name or name == '<lambda>':
        msg = f'{function!r} has no name of its own: give one with name=…'
        raise FlowDefinitionError(msg)
    if not name.isprintable() or not _MARKS.isdisjoint(name):
        msg = f'{name!r} cannot be the name of a step or flow: leave out / # ~ ( and what cannot be printed'
        raise FlowDefinitionError(msg)
    return name


def _caller_names(frame: Any) -> Mapping[str, object]:
    """Local names where a step is defined: hints that are text may mean them. Those of a module are known anyway."""
    local_names = frame.f_locals
    return _NO_NAMES if local_names is frame.f_globals else dict(local_names)
