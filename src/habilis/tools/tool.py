"""`@tool`: a typed function that code in a sandbox may call."""

import asyncio
import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import fields
from types import FrameType, MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, overload, runtime_checkable

from habilis.core.codec import Json
from habilis.core.errors import ToolCallError, ToolDefinitionError, ToolResultError
from habilis.core.similar_names import similar_names
from habilis.sandbox.contract import Side
from habilis.sandbox.host.functions import HostFunction, is_async, without_partial
from habilis.tools import attempts
from habilis.tools.calls import Calls
from habilis.tools.context import Context, ContextParameter, take_context, type_name
from habilis.tools.contract import OnError, Preview, ToolOptions
from habilis.tools.host_calls import HostCalls
from habilis.tools.parameters import Parameters, read_signature
from habilis.tools.plain_data import NotConvertible, to_plain
from habilis.tools.stubs import TypeNames, function_stub, note, signature_text
from habilis.tools.tool_names import check_name
from habilis.tools.validation import TypeValidator, describe_value

P = ParamSpec('P')
Q = ParamSpec('Q')
R_co = TypeVar('R_co', covariant=True)
S = TypeVar('S')
_NO_NAMES: Mapping[str, object] = {}


class _Compiled:
    """The validators of a signature, shared by the tools of all instances of a class."""

    parameters: Parameters | None = None
    result: TypeValidator | None = None
    has_result = False
    context: ContextParameter | None = None


class Tool(Generic[P, R_co]):
    """A function of the host with validation, stub and options. Calling it calls the function itself."""

    uses_guest = False
    """Whether it has work done in the sandbox that calls it; see `sandbox/host/guest_work.py`."""

    approval_question = ''
    """Asked instead of the usual question, even if the person has approved such calls before."""

    def __init__(
        self,
        function: Callable[P, R_co],
        *,
        name: str | None = None,
        options: ToolOptions | None = None,
        local_names: Mapping[str, object] = _NO_NAMES,
        signature: inspect.Signature | None = None,
    ) -> None:
        """`signature` is that of the function, where it is known already: its hints are types, none a string."""
        self._binds: Literal['instance', 'class', 'nothing'] = 'instance'
        if isinstance(function, (staticmethod, classmethod)):
            self._binds = 'class' if isinstance(function, classmethod) else 'nothing'
            function = cast('Callable[P, R_co]', cast('Any', function).__func__)
        self.function = function
        self.options = options or ToolOptions()
        self.name = check_name(name or _name_of(function), self.options.side)
        self.waits = is_async(function)
        """Whether the function is asynchronous. Code awaits it too, unless it is `as_sync`."""

        self.is_async = self.waits and not self.options.as_sync
        self.description = _documentation(function)
        self._local_names = local_names
        self._compiled = _Compiled()
        if signature is not None:
            self._compiled.parameters = Parameters(self.name, signature)
        self._needs_instance = False
        functools.update_wrapper(self, function, updated=())
        self.__name__ = self.name
        if self.waits and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself, without validation."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f'<tool {self.name}>'

    def __host_function__(self) -> HostFunction:
        """The function for a sandbox that is given the tool itself, without a toolbox."""
        self.check()
        calls = Calls({self.name})
        with contextlib.suppress(RuntimeError):  # no event loop runs here
            calls.bind(asyncio.get_running_loop())
        return HostCalls(calls).function(self)

    def __set_name__(self, owner: type, name: str) -> None:
        """Called for a tool that is defined in a class."""
        is_method = getattr(self.function, '__qualname__', '').endswith(f'{owner.__name__}.{name}')
        self._needs_instance = is_method and self._binds != 'nothing'

    @overload
    def __get__(self, instance: None, owner: type) -> 'Tool[P, R_co]': ...
    @overload
    def __get__(self: 'Tool[Concatenate[S, Q], R_co]', instance: S, owner: type | None = None) -> 'Tool[Q, R_co]': ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> 'Tool[..., R_co]': ...
    def __get__(self, instance: object, owner: type | None = None) -> 'Tool[..., object]':
        """The tool of an instance or class, as for methods."""
        function = cast('Any', self.function)
        target = (owner or type(instance)) if self._binds == 'class' else instance
        if self._binds == 'nothing' or target is None or not hasattr(cast('object', function), '__get__'):
            return self
        bound = Tool[..., object](MethodType(function, target), name=self.name, options=self.options)
        bound._local_names, bound._compiled = self._local_names, self._compiled
        return bound

    # Descriptions -----------------------------------------------------------------------------------------------------

    @property
    def signature(self) -> str:
        """Parameters and result as text, such as `(query: str, limit: int = 5) -> list[Hit]`."""
        return self._signature

    @functools.cached_property
    def _signature(self) -> str:
        return self._signature_text(TypeNames())

    @property
    def stub(self) -> str:
        """Python stub for the model, with the types that it uses."""
        names = TypeNames()
        function = self.render(names)
        return '\n\n'.join([*names.stubs(), function])

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that can be given by position."""
        return self._parameters.positional

    @property
    def context(self) -> ContextParameter | None:
        """Its parameter for the context of the run, which no caller passes."""
        return self._compiled.context if self._parameters else None

    @property
    def parameters(self) -> dict[str, Json]:
        """JSON schema of the arguments, for models that call functions."""
        return self._parameters.schema

    def render(self, names: TypeNames) -> str:
        """The stub without its types, which are collected in `names` for several tools."""
        parameters = self._parameters.signature.parameters.values()
        notes = [(parameter.name, note(parameter.annotation)) for parameter in parameters]
        lines = [f'{name}: {said}' for name, said in notes if said]
        doc = '\n\n'.join(part for part in (self.description, '\n'.join(lines)) if part)
        return function_stub(name=self.name, is_async=self.is_async, signature=self._signature_text(names), doc=doc)

    def check(self) -> None:
        """Read the signature and build the validators, which otherwise happens at the first call.

        Raises `ToolDefinitionError`.
        """
        self._parameters.check()
        _ = self._result

    # Calls ------------------------------------------------------------------------------------------------------------

    def validate(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """Validate and convert the arguments. Raises `ToolArgumentsError`."""
        return self._parameters.validate(args, kwargs)

    def validate_named(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
        """The same for arguments by name."""
        return self._parameters.validate_named(arguments)

    def validate_json(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
        """The same for arguments from JSON, such as a function call of a model."""
        return self._parameters.validate_json(arguments)

    def changed(self, before: inspect.BoundArguments, changes: Mapping[str, object]) -> inspect.BoundArguments:
        """Replace some of the validated arguments. Raises `ToolArgumentsError`."""
        return self._parameters.changed(before, changes)

    def complete(self, bound: inspect.BoundArguments) -> dict[str, object]:
        """Validated arguments with the defaults of those that were not given."""
        return self._parameters.complete(bound)

    def labelled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments by parameter as far as possible, without validation."""
        return self._parameters.labelled(args, kwargs)

    async def invoke(
        self,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = _NO_NAMES,
        *,
        context: Context[object] | None = None,
    ) -> object:
        """Validate the arguments, call the function, validate the result. Returns plain data."""
        return await self.run(self.validate(args, kwargs), context=context)

    @property
    def can_run_here(self) -> bool:
        """Whether `run(…, here=True)` never waits: a plain function without timeout and retries."""
        return not (self.waits or self.options.timeout is not None or self.options.retries)

    def run(
        self, bound: inspect.BoundArguments, *, here: bool = False, context: Context[object] | None = None
    ) -> Coroutine[object, object, object]:
        """Call the function with validated arguments, with the timeout and retries of its options.

        A plain function runs on another thread, so that it does not block the event loop; with `here`, on this thread.
        """
        call = functools.partial(self.function, *self._context_argument(context), *bound.args, **bound.kwargs)
        return attempts.call_tool(self.name, call, options=self.options, finish=self._finish, here=here)

    def _context_argument(self, context: Context[object] | None) -> tuple[Context[object], ...]:
        if self.context is None:
            return ()
        if context is None:
            msg = (
                f'{self.name} needs the context of a run: give the tool to an agent, '
                'or pass Toolbox(…, context=Context(deps))'
            )
            raise ToolCallError(msg)
        if not self.context.accepts(context.deps):
            given = type_name(cast('object', type(context.deps)))
            msg = f'{self.name} needs deps of type {self.context.type_name}, not {given}'
            raise ToolCallError(msg)
        return (context,)

    def _finish(self, result: object) -> object:
        """Validate the result and convert it to plain data."""
        from pydantic import ValidationError

        validator = self._result
        if validator is not None:
            try:
                result = validator.check(result)
            except ValidationError as error:
                problems = '\n'.join(f'  {line}' for line in validator.problems('result', result, error))
                msg = f'{self.name} returned another type than it declares (a bug of the tool):\n{problems}'
                raise ToolResultError(msg) from None
        try:
            return to_plain(result)
        except NotConvertible as error:
            msg = f'{self.name} returned {describe_value(result)}, which cannot go into the sandbox: {error}'
            raise ToolResultError(msg) from None

    @property
    def _parameters(self) -> Parameters:
        compiled = self._compiled
        if self._needs_instance:
            msg = f'{self.name} is a method: pass the tool of an instance, as in `thing.{self.name}`'
            raise ToolDefinitionError(msg)
        if compiled.parameters is None:
            signature = read_signature(self.name, self.function, self._local_names)
            signature, compiled.context = take_context(self.name, signature)
            compiled.parameters = Parameters(self.name, signature)
            self._local_names = _NO_NAMES
        return compiled.parameters

    @property
    def _result(self) -> TypeValidator | None:
        compiled = self._compiled
        if not compiled.has_result:
            compiled.result = self._result_validator(self._parameters.signature.return_annotation)
            compiled.has_result = True
        return compiled.result

    def _result_validator(self, hint: object) -> TypeValidator | None:
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            msg = f'{self.name} cannot be a tool: it is a generator; return a list instead'
            raise ToolDefinitionError(msg)
        if hint is inspect.Signature.empty or hint is Any:
            return None
        try:
            return TypeValidator(hint, TypeNames(spell_enums=True).text(hint), result=True)
        except ToolDefinitionError as error:
            msg = f'{self.name} cannot be a tool: its result: {error}'
            raise ToolDefinitionError(msg) from error

    def _signature_text(self, names: TypeNames) -> str:
        may_be_none = self.options.on_error == 'none'
        return signature_text(self._parameters.signature, names, may_be_none=may_be_none)


AnyTool = Tool[..., object]


@runtime_checkable
class MakesTool(Protocol):
    """Something else that can be a tool, such as an agent."""

    def as_tool(self) -> AnyTool:
        """The tool."""
        ...


@overload
def tool(function: Callable[P, R_co], /) -> Tool[P, R_co]: ...
@overload
def tool(
    *,
    name: str | None = None,
    timeout: float | None = None,
    retries: int = 0,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
    in_memory: bool = False,
    needs_approval: bool = False,
    side: Side = 'code',
    on_error: OnError = 'raise',
    as_sync: bool = False,
    preview: Preview | None = None,
) -> Callable[[Callable[P, R_co]], Tool[P, R_co]]: ...
def tool(function: Callable[..., object] | None = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Make a function, method or callable object a tool.

    Args:
        function: the function; the model sees its type hints and docstring. name: name of the tool (default: the name
        of the function). timeout: timeout of one attempt in seconds, then `ToolTimeout`. retries: number of retries
        after a failed attempt. read_only: whether it changes nothing; where nothing may be changed, only such tools are
        there. destructive: whether it may delete or overwrite something. idempotent: whether a repeated call with the
        same arguments does no harm. in_memory: its effects are in the memory of this process only; a run that is
        resumed elsewhere repeats its calls.
        needs_approval: a person must approve each call. side: who may call it: the `code`, the `model` itself, or
        `both`. on_error: `raise` the error in the code, or return `None` there and show the error to the model
        (`none`). as_sync: code calls this `async def` without `await`. preview: takes the arguments and returns a
        unified diff of the changes, shown to the person who approves.
    """
    make = tool_maker(caller_names(sys._getframe(1)), name, **options)  # pyright: ignore[reportPrivateUsage]
    return make if function is None else make(function)


def tool_maker(
    local_names: Mapping[str, object], name: str | None = None, **options: Any
) -> Callable[[Callable[..., object]], AnyTool]:
    """Makes tools with these options. `local_names` are those of the place where the function is defined."""
    checked = _options(**options)

    def make(target: Callable[..., object]) -> AnyTool:
        if isinstance(target, str):
            msg = f'@tool({target!r}) is not a function: write @tool(name={target!r})'
            raise ToolDefinitionError(msg)
        inner = target.function if isinstance(target, Tool) else target
        return AnyTool(cast('Callable[..., object]', inner), name=name, options=checked, local_names=local_names)

    return make


def as_tool(function: 'AnyTool | MakesTool | Callable[..., object]') -> AnyTool:
    """A tool as it is, or a tool made of a function, an agent or a workflow."""
    if isinstance(function, Tool):
        return cast('AnyTool', function)
    if isinstance(function, MakesTool) and not isinstance(function, type):
        return function.as_tool()
    inner = getattr(function, '__func__', None)
    if isinstance(function, MethodType) and isinstance(inner, Tool):  # a class method around a tool
        return cast('AnyTool', inner).__get__(function.__self__, type(function.__self__))
    if not callable(function):
        msg = f'{describe_value(function)} cannot be a tool: it is not callable'
        raise ToolDefinitionError(msg)
    return AnyTool(function)


def _options(**given: Any) -> ToolOptions:
    known = [field.name for field in fields(ToolOptions)]
    for name in given.keys() - known:
        near = similar_names(name, known)
        msg = f'@tool has no option {name!r}: {f"did you mean {near[0]}?" if near else "it has " + ", ".join(known)}'
        raise ToolDefinitionError(msg)
    options = ToolOptions(**given)
    timeout, retries = cast('object', options.timeout), cast('object', options.retries)
    problem = ''
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
        problem = f'timeout={timeout!r}: give seconds greater than 0, or None'
    elif not isinstance(retries, int) or retries < 0:
        problem = f'retries={retries!r}: give a whole number, 0 or more'
    elif options.retries and not options.idempotent:
        problem = 'retries repeat a call, which idempotent=False forbids: choose one'
    elif options.read_only and options.destructive:
        problem = 'a tool that is read_only changes nothing, and a destructive one does: choose one'
    elif options.side not in {'code', 'model', 'both'}:
        problem = f"side={options.side!r}: give 'code', 'model' or 'both'"
    elif options.on_error not in {'raise', 'none'}:
        problem = f"on_error={options.on_error!r}: give 'raise' or 'none'"
    if problem:
        raise ToolDefinitionError(problem)
    return options


def caller_names(frame: FrameType) -> Mapping[str, object]:
    """Local names where a function is defined, for type hints in quotes; empty at module level."""
    local_names = frame.f_locals
    return _NO_NAMES if local_names is frame.f_globals else dict(local_names)


def _name_of(function: object) -> str:
    function = without_partial(function)
    return str(getattr(function, '__name__', type(function).__name__))


def _documentation(function: object) -> str:
    function = without_partial(function)
    own: str | None = function.__doc__
    if not inspect.isroutine(function) and not inspect.isclass(function):
        own = type(function).__call__.__doc__ or own
    return inspect.cleandoc(own or '')
