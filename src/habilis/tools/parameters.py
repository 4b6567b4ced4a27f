"""The parameters of a tool: binds the arguments of a call, validates them, and explains what is wrong."""

import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from habilis.core.errors import ToolArgumentsError, ToolDefinitionError
from habilis.core.narrowing import is_list, is_mapping, is_tuple
from habilis.core.similar_names import similar_names

if TYPE_CHECKING:
    from habilis.core.codec import Json
from habilis.sandbox.host.functions import label_arguments, without_partial
from habilis.tools.forward_references import resolve_class_hints
from habilis.tools.stubs import TypeNames, description, signature_text
from habilis.tools.validation import TypeValidator

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_Args = inspect.Parameter.VAR_POSITIONAL
_Kwargs = inspect.Parameter.VAR_KEYWORD
_Check = Callable[[TypeValidator, object], object]


def read_signature(name: str, function: Callable[..., object], local_names: Mapping[str, object]) -> inspect.Signature:
    """The signature with resolved type hints."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        msg = f'{name} cannot be a tool: it has no signature; wrap it in a function with type hints'
        raise ToolDefinitionError(msg) from error
    try:
        hints = typing.get_type_hints(_with_hints(function), localns=dict(local_names), include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        msg = f'{name} cannot be a tool: its type hints cannot be read ({error}); define the types before the tool'
        raise ToolDefinitionError(msg) from error
    resolve_class_hints(hints.values(), local_names)
    parameters = [
        parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    result = function if inspect.isclass(function) else hints.get('return', signature.return_annotation)
    return signature.replace(parameters=parameters, return_annotation=result)


def _with_hints(function: Callable[..., object]) -> object:
    """The object with the type hints: the function of a partial, `__init__` of a class, `__call__` of other objects."""
    found = without_partial(function)
    if inspect.isclass(found) and inspect.isfunction(found.__init__) and '__signature__' not in found.__dict__:
        found = found.__init__
    if not (inspect.isroutine(found) or inspect.isclass(found) or hasattr(found, '__wrapped__')):
        found = type(found).__call__
    return inspect.unwrap(cast('Callable[..., object]', found))


class Parameters:
    """The parameters of one tool, compiled once."""

    def __init__(self, name: str, signature: inspect.Signature) -> None:
        self.name = name
        self.signature = signature
        everything = signature.parameters.values()
        self._positional = [parameter for parameter in everything if parameter.kind in _POSITIONAL]
        self._by_name = {parameter.name: parameter for parameter in everything if parameter.kind in _BY_NAME}
        self._more = {parameter.kind: parameter.name for parameter in everything if parameter.kind in {_Args, _Kwargs}}
        self.positional = tuple(parameter.name for parameter in self._positional)
        self._defaults = {parameter.name: _default(parameter) for parameter in everything}

    @functools.cached_property
    def _validators(self) -> dict[str, TypeValidator | None]:
        """Of each parameter. Building them takes a millisecond a tool, and a run may call few of very many tools."""
        return {parameter.name: self._validator(parameter) for parameter in self.signature.parameters.values()}

    def check(self) -> None:
        """Build the validators. Raises `ToolDefinitionError`."""
        _ = self._validators

    @functools.cached_property
    def schema(self) -> 'dict[str, Json]':
        """JSON schema of an object with the arguments, for models that call functions."""
        from pydantic import TypeAdapter

        validators = {name: validator for name, validator in self._validators.items() if validator is not None}
        try:
            made, shared = TypeAdapter.json_schemas(
                [(name, 'validation', validator.adapter) for name, validator in validators.items()]
            )
        except Exception as error:  # pydantic's own, imported from several places
            msg = f'{self.name} cannot be offered to a model: a parameter has no JSON form ({error})'
            raise ToolDefinitionError(msg) from error
        properties: dict[str, Json] = {}
        required: list[Json] = []
        for parameter in self.signature.parameters.values():
            schema = cast('dict[str, Json]', dict(made.get((parameter.name, 'validation'), {})))
            said = description(parameter.annotation)
            if said:
                schema['description'] = said
            if isinstance(parameter.default, (bool, int, float, str)) and not isinstance(parameter.default, Enum):
                schema['default'] = parameter.default
            if parameter.kind is _Kwargs:
                continue
            properties[parameter.name] = {'type': 'array', 'items': schema} if parameter.kind is _Args else schema
            if parameter.kind is not _Args and parameter.default is inspect.Parameter.empty:
                required.append(parameter.name)
        whole: dict[str, Json] = {'type': 'object', 'properties': properties, 'required': required}
        whole['additionalProperties'] = _Kwargs in self._more
        whole |= cast('dict[str, Json]', {key: value for key, value in shared.items() if key == '$defs'})
        return cast('dict[str, Json]', _drop_non_json_defaults(whole))

    def validate(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """Validate and convert the arguments. Raises `ToolArgumentsError` with all problems."""
        problems: list[str] = []
        given = self._bind(args, kwargs, problems)
        return self._checked(given, problems)

    def validate_named(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
        """The same for arguments by name, with `*args` as a list under its name."""
        problems: list[str] = []
        return self._checked(self._bind_named(arguments, problems), problems)

    def validate_json(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
        """The same for arguments from JSON, where bytes and all keys are strings."""
        problems: list[str] = []
        return self._checked(self._bind_named(arguments, problems), problems, check=TypeValidator.check_json)

    def _bind_named(self, arguments: Mapping[str, object], problems: list[str]) -> dict[str, object]:
        given: dict[str, object] = {}
        extra: dict[str, object] = {}
        for name, value in arguments.items():
            kind = self.signature.parameters[name].kind if name in self.signature.parameters else None
            if kind is _Args and (is_list(value) or is_tuple(value)):
                given[name] = tuple(value)
            elif kind is _Args:
                problems.append(f'{name}: expected a list, got {type(value).__name__}')
            elif kind is _Kwargs and is_mapping(value):
                extra |= {str(key): item for key, item in value.items()}
            elif kind is not None and kind is not _Kwargs:
                given[name] = value
            elif _Kwargs in self._more:
                extra[name] = value
            else:
                problems.append(self._unknown(name))
        if extra:
            given[self._more[_Kwargs]] = extra
        self._note_missing(given, problems)
        self._fill_gaps(given)
        return given

    def _fill_gaps(self, given: dict[str, object]) -> None:
        """Add defaults before `*args` or positional-only arguments, which must be passed by position."""
        last = len(self._positional) if self._more.get(_Args) in given else 0
        for index, parameter in enumerate(self._positional):
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.name in given:
                last = max(last, index)
        for parameter in self._positional[:last]:
            given.setdefault(parameter.name, parameter.default)

    def changed(self, before: inspect.BoundArguments, changes: Mapping[str, object]) -> inspect.BoundArguments:
        """Replace some of the bound arguments, and validate again."""
        return self.validate_named({**before.arguments, **changes})

    def complete(self, bound: inspect.BoundArguments) -> dict[str, object]:
        """All arguments by parameter, with defaults."""
        return {**self._defaults, **bound.arguments}

    def labelled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments by parameter without validation, for the record of an invalid call."""
        return label_arguments(self.positional, args, kwargs)

    def _validator(self, parameter: inspect.Parameter) -> TypeValidator | None:
        if parameter.annotation is inspect.Parameter.empty or parameter.annotation is Any:
            return None
        try:
            return TypeValidator(parameter.annotation, TypeNames(spell_enums=True).text(parameter.annotation))
        except ToolDefinitionError as error:
            msg = f'{self.name} cannot be a tool: parameter {parameter.name!r}: {error}'
            raise ToolDefinitionError(msg) from error

    def _bind(self, args: Sequence[object], kwargs: Mapping[str, object], problems: list[str]) -> dict[str, object]:
        given = {parameter.name: value for parameter, value in zip(self._positional, args, strict=False)}
        rest = tuple(args[len(self._positional) :])
        if rest and _Args in self._more:
            given[self._more[_Args]] = rest
        elif rest:
            problems.append(f'{len(args)} values given by position, but it takes {len(self._positional)}')
        extra: dict[str, object] = {}
        for name, value in kwargs.items():
            if name not in self._by_name:
                if _Kwargs in self._more:
                    extra[name] = value
                else:
                    problems.append(self._unknown(name))
            elif name in given:
                problems.append(f'{name}: given twice, by position and by name')
            else:
                given[name] = value
        if extra:
            given[self._more[_Kwargs]] = extra
        self._note_missing(given, problems)
        return given

    def _note_missing(self, given: Mapping[str, object], problems: list[str]) -> None:
        for parameter in self.signature.parameters.values():
            needed = parameter.default is inspect.Parameter.empty and parameter.kind not in {_Args, _Kwargs}
            if needed and parameter.name not in given:
                validator = self._validators[parameter.name]
                problems.append(f'{parameter.name}: missing' + (f', expected {validator.text}' if validator else ''))

    def _unknown(self, name: str) -> str:
        if name in self.signature.parameters:
            return f'{name}: is positional-only'
        near = similar_names(name, self._by_name, n=1)
        return f'{name}: there is no such parameter' + (f'; did you mean {near[0]!r}?' if near else '')

    def _checked(
        self, given: dict[str, object], problems: list[str], check: _Check = TypeValidator.check
    ) -> inspect.BoundArguments:
        checked: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if name not in given:
                continue
            value = given[name]
            if parameter.kind is _Args:
                values = cast('tuple[object, ...]', value)
                checked[name] = tuple(
                    self._check(name, f'*{name}[{i}]', v, problems, check) for i, v in enumerate(values)
                )
            elif parameter.kind is _Kwargs:
                named = cast('dict[str, object]', value)
                checked[name] = {key: self._check(name, key, item, problems, check) for key, item in named.items()}
            elif value is parameter.default:
                checked[name] = value  # a default is valid, whatever the hint says
            else:
                checked[name] = self._check(name, name, value, problems, check)
        if problems:
            lines = '\n'.join(f'  {problem}' for problem in problems)
            text = signature_text(self.signature, TypeNames())
            msg = f'{self.name} was not called: invalid arguments:\n{lines}\n{self.name}{text}'
            raise ToolArgumentsError(msg)
        return inspect.BoundArguments(self.signature, cast('Any', checked))

    def _check(self, name: str, label: str, value: object, problems: list[str], check: _Check) -> object:
        from pydantic import ValidationError

        validator = self._validators[name]
        if validator is None:
            return value
        try:
            return check(validator, value)
        except ValidationError as error:
            problems += validator.problems(label, value, error)
        except RecursionError:
            problems.append(f'{label}: nested too deep')
        return value


def _drop_non_json_defaults(part: 'Json') -> 'Json':
    """A schema without defaults that JSON does not have: infinity and NaN."""
    if isinstance(part, list):
        return [_drop_non_json_defaults(inner) for inner in part]
    if isinstance(part, dict):
        return {
            key: _drop_non_json_defaults(inner) for key, inner in part.items() if key != 'default' or _is_json(inner)
        }
    return part


def _is_json(default: 'Json') -> bool:
    try:
        json.dumps(default, allow_nan=False)
    except ValueError:
        return False
    return True


def _default(parameter: inspect.Parameter) -> object:
    return () if parameter.kind is _Args else {} if parameter.kind is _Kwargs else parameter.default
