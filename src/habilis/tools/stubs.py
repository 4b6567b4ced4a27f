"""Python stubs of tools, for the prompt.

Values go into the sandbox as plain data, so stubs show the types that code gets: a dataclass or model as a `TypedDict`,
an enum as the `Literal` of its values.
"""

import ast
import dataclasses
import enum
import inspect
import keyword
import re
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, cast

import typing_extensions

from habilis.tools.forward_references import class_hints
from habilis.tools.pydantic_hints import typed_dict_fields

_TRANSPARENT = (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.ReadOnly, typing.Final)

_PLAIN = frozenset({bool, int, float, str, list, dict})


class TypeNames:
    """Collects the types in stubs. Each is defined once; types with the same name get different names."""

    def __init__(self, *, spell_enums: bool = False) -> None:
        self._spell_enums = spell_enums
        self._names: dict[tuple[type, bool], str] = {}
        self._stubs: list[str] = []
        self._in_result = False

    def result(self, hint: object) -> str:
        """The hint of a result as code. Records may have other keys in results than in arguments."""
        self._in_result = True
        try:
            return self.text(hint)
        finally:
            self._in_result = False

    def text(self, hint: object) -> str:
        """A hint as code. Its classes are collected for `stubs`."""
        if type(hint) is type and hint in _PLAIN:  # most hints are
            return hint.__name__
        if hint is None or hint is type(None):
            return 'None'
        if hint is ...:
            return '...'
        if isinstance(hint, str):
            return hint
        if isinstance(hint, list):  # the parameters of a `Callable`
            return f'[{", ".join(self.text(inner) for inner in cast("list[object]", hint))}]'
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated or origin in _TRANSPARENT:
            return self.text(arguments[0])
        if origin is typing.Literal:
            return f'Literal[{", ".join(_literal(value) for value in arguments)}]'
        if origin in {typing.Union, types.UnionType}:
            return ' | '.join(dict.fromkeys(self.text(argument) for argument in arguments))
        if origin is not None:
            inside = ', '.join(self.text(argument) for argument in arguments) or '()'
            return f'{self.text(origin)}[{inside}]' if not _is_record(origin) else self.text(origin)
        return self._bare(hint)

    def stubs(self) -> list[str]:
        """The definitions of the collected types, as code."""
        return list(self._stubs)

    def _bare(self, hint: object) -> str:
        if isinstance(hint, typing.TypeVar):
            return 'Any'
        for inner in ('__supertype__', '__value__'):  # a `NewType`, a `type` statement
            if hasattr(hint, inner) and not isinstance(hint, type):
                return self.text(getattr(hint, inner))
        if not isinstance(hint, type):
            return _identifier(str(hint).removeprefix('typing.'))
        return self._class(hint)

    def _class(self, kind: type) -> str:
        if _is_enum(kind):
            return _enum_values(kind) if self._spell_enums else self._named(kind)
        if tuple in kind.__mro__ and hasattr(kind, '_fields'):  # a named tuple
            hints = class_hints(kind)
            names = cast('tuple[str, ...]', cast('Any', kind)._fields)
            return f'tuple[{", ".join(self.text(hints.get(name, Any)) for name in names)}]'
        if _is_record(kind):
            return self._named(kind)
        return 'str' if issubclass(kind, PurePath) else _identifier(kind.__name__)

    def _named(self, kind: type) -> str:
        key = kind, self._in_result and _is_record(kind) and _has_two_forms(kind)
        if key in self._names:
            return self._names[key]
        base = name = _identifier(kind.__name__)
        count = 1
        while name in self._names.values():
            count += 1
            name = f'{base}{count}'
        self._names[key] = name
        self._stubs.append(f'{name} = {_enum_values(kind)}' if _is_enum(kind) else self._record_stub(name, kind))
        return name

    def _record_stub(self, name: str, kind: type) -> str:
        fields = [field for field in _fields(kind) if field.key(self._in_result)]
        names = [field.key(self._in_result) for field in fields]
        if not all(key.isidentifier() and not keyword.iskeyword(key) for key in names):
            inside = ', '.join(f'{key!r}: {self.text(field.hint)}' for key, field in zip(names, fields, strict=True))
            return f'{name} = TypedDict({name!r}, {{{inside}}})'
        lines = [f'class {name}(TypedDict):']
        doc = _own_doc(kind)
        if doc:
            lines.append(f'    {docstring(doc)}')
        lines += [
            f'    {key}: {self.text(field.hint)}{field.comment}' for key, field in zip(names, fields, strict=True)
        ]
        return '\n'.join(lines if len(lines) > 1 else [*lines, '    pass'])


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Field:
    given: str
    """Its key in arguments; empty if it cannot be passed."""

    returned: str
    """Its key in results; empty if it is not included."""

    hint: object
    note: str = ''

    def key(self, in_result: bool) -> str:
        return self.returned if in_result else self.given

    @property
    def comment(self) -> str:
        said = '; '.join(part for part in (note(self.hint), self.note) if part)
        return f'  # {" ".join(said.split())}' if said else ''


def _fields(kind: type) -> Iterator[_Field]:
    if typing_extensions.is_typeddict(kind):
        for name, (hint, needed) in typed_dict_fields(kind).items():
            yield _Field(given=name, returned=name, hint=hint, note='' if needed else 'may be absent')
    elif dataclasses.is_dataclass(kind):
        hints = class_hints(kind)
        for field in dataclasses.fields(kind):
            has_default = field.init and field.default is not dataclasses.MISSING
            made = field.init and field.default_factory is not dataclasses.MISSING
            said = f'default {_value(field.default)}' if has_default else 'optional' if made else ''
            given = field.name if field.init else ''
            yield _Field(given=given, returned=field.name, hint=hints.get(field.name, Any), note=said)
    else:
        yield from _model_fields(cast('Any', kind))


def _model_fields(model: Any) -> Iterator[_Field]:
    for name, info in model.model_fields.items():
        default = 'optional' if info.default_factory else f'default {_value(info.default)}'
        parts = (info.description, ', '.join(_demands(info.metadata)), '' if info.is_required() else default)
        given = _first_alias(info.validation_alias) or info.alias or name
        returned = '' if info.exclude else info.serialization_alias or name
        said = '; '.join(part for part in parts if part)
        yield _Field(given=given, returned=returned, hint=info.annotation, note=said)
    for name, info in model.model_computed_fields.items():
        yield _Field(given='', returned=info.alias or name, hint=info.return_type, note=info.description or '')


def _first_alias(alias: object) -> str:
    """The first name by which a field can be given; a path into other data has none."""
    choices = cast('list[object]', getattr(alias, 'choices', [alias]))
    return next((choice for choice in choices if isinstance(choice, str)), '')


def _has_two_forms(kind: type, seen: tuple[type, ...] = ()) -> bool:
    """Whether a record, or one inside of it, has other keys in a result than in an argument."""
    if kind in seen:
        return False
    fields = list(_fields(kind))
    if any(field.given != field.returned for field in fields):
        return True
    inner = (record for field in fields for record in _records(field.hint))
    return any(_has_two_forms(record, (*seen, kind)) for record in inner)


def _records(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and _is_record(hint):
        yield hint
    for inner in (typing.get_origin(hint), *typing.get_args(hint)):
        if inner is not None:
            yield from _records(inner)


def _is_record(kind: object) -> bool:
    """A class whose values become dicts: a `TypedDict`, a dataclass, a pydantic model."""
    if not isinstance(kind, type):
        return False
    known: tuple[str, ...] = ('__dataclass_fields__', '__pydantic_fields__')
    return typing_extensions.is_typeddict(kind) or any(hasattr(kind, name) for name in known)


def _is_enum(kind: type) -> typing.TypeGuard[type[enum.Enum]]:
    return issubclass(kind, enum.Enum)


def _enum_values(kind: type[enum.Enum]) -> str:
    return f'Literal[{", ".join(dict.fromkeys(_value(member.value) for member in kind))}]'


def _own_doc(kind: type) -> str:
    """Not the one that `@dataclass` writes, nor that of a base class."""
    doc = kind.__dict__.get('__doc__') or ''
    return '' if doc.startswith(f'{kind.__name__}(') else inspect.cleandoc(doc)


_WRITTEN = frozenset({type(None), bool, int, str})


def _literal(value: object) -> str:
    return _value(value.value if isinstance(value, enum.Enum) else value)


def _value(value: object) -> str:
    """A value as code, or `...` for one that cannot be written as code."""
    if isinstance(value, enum.Enum):
        return _value(value.value)
    if type(value) in _WRITTEN:  # most defaults are
        return repr(value)
    try:
        text = repr(value)
        ast.literal_eval(text)
    except Exception:  # a `__repr__` may do anything
        return '...'
    return text


def _identifier(name: str) -> str:
    return re.sub(r'\W+', '_', name).strip('_') or 'Any'


def description(hint: object) -> str:
    """What `Annotated[…]` says of a parameter: text, `Field(description=…)` or `Doc(…)`."""
    if typing.get_origin(hint) is not typing.Annotated:
        return ''
    for said in typing.get_args(hint)[1:]:
        text = (
            said
            if isinstance(said, str)
            else getattr(said, 'description', None) or getattr(said, 'documentation', None)
        )
        if isinstance(text, str):
            return ' '.join(text.split())
    return ''


_DEMANDS = {
    'gt': '>',
    'ge': '>=',
    'lt': '<',
    'le': '<=',
    'multiple_of': 'a multiple of',
    'min_length': 'length >=',
    'max_length': 'length <=',
    'pattern': 'matches',
}
"""Attributes of what stands in `Annotated[…]`, in pydantic's words and in ours."""


def note(hint: object) -> str:
    """All that `Annotated[…]` says of a value: what it is for, and what it must fulfil."""
    return '; '.join(part for part in (description(hint), ', '.join(_limits(hint))) if part)


def _limits(hint: object) -> Iterator[str]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        yield from _limits(arguments[0])
        yield from _demands(arguments[1:])
    elif origin in {typing.Union, types.UnionType}:
        for member in arguments:
            yield from _limits(member)
    elif len(arguments) == 1 and origin is not typing.Literal:
        yield from (f'each {said}' for said in _limits(arguments[0]))


def _demands(metadata: Iterable[object]) -> Iterator[str]:
    for known in metadata:
        yield from _demands(getattr(known, 'metadata', ()))  # of a `Field(…)`
        for name, words in _DEMANDS.items():
            value = getattr(known, name, None)
            if name == 'pattern':
                value = getattr(value, 'pattern', value)  # it may be compiled
            if isinstance(value, (str, int, float)) and (value or name != 'min_length'):
                yield f'{words} {value}'


def signature_text(signature: inspect.Signature, names: TypeNames, *, may_be_none: bool = False) -> str:
    """The parameters and the result, as after a `def name`."""
    parts: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    starred = inspect.Parameter.VAR_POSITIONAL in kinds
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append('*')
            starred = True
        parts.append(_parameter(parameter, names))
        last = index + 1 == len(kinds) or kinds[index + 1] is not inspect.Parameter.POSITIONAL_ONLY
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and last:
            parts.append('/')
    result = ''
    if signature.return_annotation is not inspect.Signature.empty:
        result = names.result(signature.return_annotation)
        if may_be_none and 'None' not in result.split(' | ') and result != 'Any':
            result += ' | None'
        result = f' -> {result}'
    return f'({", ".join(parts)}){result}'


_STARS = {inspect.Parameter.VAR_POSITIONAL: '*', inspect.Parameter.VAR_KEYWORD: '**'}


def _parameter(parameter: inspect.Parameter, names: TypeNames) -> str:
    text = _STARS.get(parameter.kind, '') + parameter.name
    has_hint = parameter.annotation is not inspect.Parameter.empty
    if has_hint:
        text += f': {names.text(parameter.annotation)}'
    if parameter.default is not inspect.Parameter.empty:
        text += (' = ' if has_hint else '=') + _value(parameter.default)
    return text


def docstring(text: str, indent: str = '    ') -> str:
    """A text as a docstring, whatever is in it."""
    safe = text.replace('\\', '\\\\').replace('"""', '\\"\\"\\"').strip()
    if not safe.isprintable():
        safe = ''.join(letter for letter in safe if letter.isprintable() or letter == '\n')
    if safe.endswith('"'):
        safe = f'{safe[:-1]}\\"'
    lines = [f'{indent}{line}'.rstrip() for line in safe.splitlines()]
    if len(lines) < 2:
        return f'"""{safe}"""'
    return f'"""{lines[0].strip()}\n' + '\n'.join(lines[1:]) + f'\n{indent}"""'


def function_stub(*, name: str, is_async: bool, signature: str, doc: str) -> str:
    """A whole function without a body."""
    body = docstring(doc) if doc.strip() else '...'
    return f'{"async " if is_async else ""}def {name}{signature}:\n    {body}'
