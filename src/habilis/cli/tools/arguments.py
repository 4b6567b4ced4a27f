"""Arguments of a tool from the command line: JSON or plain text, by the declared types."""

import ast
from collections.abc import Sequence
from inspect import Parameter, Signature
from typing import Any

import typer
from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from habilis.core.similar_names import similar_names


def parse_arguments(signature: Signature, texts: Sequence[str]) -> tuple[list[object], dict[str, object]]:
    """Arguments by position, and by name where a text is `NAME=VALUE`. Raises `typer.BadParameter`."""
    args, kwargs = list[object](), dict[str, object]()
    positional = [one for one in signature.parameters.values() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    others = {one.kind: one for one in signature.parameters.values()}
    for text in texts:
        name, equals, value = text.partition('=')
        named = _named(signature, name) if equals and name.isidentifier() else None
        if named is not None:
            if name in kwargs:
                msg = f'{name} is given twice'
                raise typer.BadParameter(msg)
            kwargs[name] = parse_value(name, value, named.annotation)
            continue
        here = positional[len(args)] if len(args) < len(positional) else others.get(Parameter.VAR_POSITIONAL)
        if here is None:
            msg = f'{text!r} is one argument too many'
            raise typer.BadParameter(msg)
        args.append(parse_value(here.name, text, here.annotation))
    return args, kwargs


def _named(signature: Signature, name: str) -> Parameter | None:
    """The parameter of a name; None if the text is no `NAME=VALUE`."""
    known = {one.name: one for one in signature.parameters.values() if one.kind is not Parameter.VAR_POSITIONAL}
    many = next((one for one in known.values() if one.kind is Parameter.VAR_KEYWORD), None)
    found = known.get(name)
    if found is not None and found is not many:
        return found
    if many is None and (near := similar_names(name, known, n=1)):
        msg = f'there is no parameter {name!r}; did you mean {near[0]}=…?'
        raise typer.BadParameter(msg)
    return many


def parse_value(name: str, text: str, annotation: Any) -> object:
    """The value that a text means for a parameter. Raises `typer.BadParameter`."""
    if annotation is str:
        return text
    try:
        expected: TypeAdapter[object] = TypeAdapter(annotation)
    except PydanticSchemaGenerationError:
        expected = TypeAdapter(object)
    try:
        return expected.validate_json(text, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
    for reading in (text, _literal(text)):
        try:
            return expected.validate_python(reading, strict=True)
        except ValidationError:
            continue
    detail = '' if problem['type'] == 'json_invalid' else f' ({problem["msg"]})'
    shown = text if len(text) <= 60 else f'{text[:59]}…'
    msg = f'{name}: {shown!r} is not {_type_name(annotation)}{detail}'
    raise typer.BadParameter(msg)


def _literal(text: str) -> object:
    """A Python value, as `True` or `['a']`; the text itself if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _type_name(annotation: object) -> str:
    return (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, '__args__') else f'{annotation}'
    )
