"""`RecordedFunction`: a function whose calls are recorded, with its options. The base of `FlowStep` and `Flow`."""

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast

from habilis.flows.contract import FlowDefinitionError, StepOptions
from habilis.flows.inputs import FunctionInputs

P = ParamSpec('P')
R_co = TypeVar('R_co', covariant=True)
NO_NAMES: Mapping[str, object] = {}
_RESERVED = frozenset('/#~(')
"""Characters with a meaning in the paths of a journal."""


class GivenOptions(TypedDict, total=False):
    """The options of `step`; see `StepOptions`."""

    retries: int
    retry_delay: float
    timeout: float | None
    idempotent: bool


class RecordedFunction(Generic[P, R_co]):
    """A function whose calls are recorded."""

    __name__: str

    def __init__(
        self,
        function: Callable[P, Awaitable[R_co] | R_co],
        *,
        name: str | None,
        options: StepOptions,
        local_names: Mapping[str, object],
    ) -> None:
        self.function: Callable[P, Any] = function
        """The original function; calling it records nothing. Whoever calls it knows whether to await the result."""

        self.name = _checked_name(name or str(getattr(function, '__name__', '')), function)
        self.options = options
        self._local_names = local_names
        functools.update_wrapper(self, function, updated=())
        if sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        raise NotImplementedError

    @property
    def target(self) -> str:
        """`module:name`, by which other processes import it."""
        return f'{self.function.__module__}:{self.function.__qualname__}'

    @functools.cached_property
    def inputs(self) -> FunctionInputs:
        """Its parameters and result. Read on the first call, so that types may be defined after the function."""
        return FunctionInputs(self.name, self.function, self._local_names)


def checked_options(**given: Unpack[GivenOptions]) -> StepOptions:
    """Validated options of a step. Raises `FlowDefinitionError`."""
    options = StepOptions(**given)
    check_timeout(options.timeout)
    problem = ''
    if not _is_count(options.retries):
        problem = f'retries={options.retries!r}: give a whole number, 0 or more'
    elif not isinstance(cast('object', options.retry_delay), (int, float)) or not options.retry_delay >= 0:
        problem = f'retry_delay={options.retry_delay!r}: give seconds, 0 or more'
    elif options.retries and not options.idempotent:
        problem = 'retries repeat a step, which idempotent=False forbids: give only one of them'
    if problem:
        raise FlowDefinitionError(problem)
    return options


def check_timeout(value: object) -> None:
    """Raise `FlowDefinitionError` unless it is a positive number of seconds, or None."""
    if value is not None and not (isinstance(value, (int, float)) and value > 0):
        msg = f'timeout={value!r}: give seconds, more than 0, or None'
        raise FlowDefinitionError(msg)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _checked_name(name: str, function: object) -> str:
    if not name or name == '<lambda>':
        msg = f'{function!r} has no name: give it one with name=…'
        raise FlowDefinitionError(msg)
    if not name.isprintable() or not _RESERVED.isdisjoint(name):
        msg = f'{name!r} is not a valid name of a step or flow: use printable characters other than / # ~ ('
        raise FlowDefinitionError(msg)
    return name
