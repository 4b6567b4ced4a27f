"""Signatures of methods that take `**options`: `help()`, notebooks and `inspect` show every option."""

from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, getdoc, signature
from typing import Any, TypeVar, cast

F = TypeVar('F', bound=Callable[..., object])


def with_options(options: type, defaults: type, *, like: Callable[..., object] | None = None) -> Callable[[F], F]:
    """Show the options of a TypedDict in the signature of a method, and what the method `like` it says about them.

    `defaults` is the dataclass that the options become.
    """
    known = {item.name: item.default for item in fields(defaults) if item.default is not MISSING}

    def show(method: F) -> F:
        plain = signature(method)
        named = [
            # A task is needed: it has a default only so that a wrong name for it gets our message, not Python's.
            parameter.replace(default=Parameter.empty) if parameter.name == 'task' else parameter
            for parameter in plain.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=known.get(name), annotation=kind)
            for name, kind in options.__annotations__.items()
        ]
        shown = cast('Any', method)
        shown.__signature__ = plain.replace(parameters=[*named, *more])
        if like is not None:
            _, heading, arguments = (getdoc(like) or '').partition('Args:')
            shown.__doc__ = f'{getdoc(method)}\n\n{heading}{arguments}'
        return method

    return show
