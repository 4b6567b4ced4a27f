"""Load objects of the user's program that an option names as `MODULE:NAME`."""

import importlib
import os
import sys
from collections.abc import Callable, Iterable

import typer

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.streams import say
from habilis.core.narrowing import is_list, is_tuple
from habilis.tools import Toolset

AnyTool = Toolset | Callable[..., object]


def load_object(name: str, *, option: str, example: str, folder: str | None = None) -> object:
    """Import `module:name`, also from `folder` (default: the current one). Raises `BadParameter`."""
    module, colon, path = name.partition(':')
    if not (module and colon and path):
        msg = f'{name!r} is not MODULE:NAME, such as {example}'
        raise typer.BadParameter(msg, param_hint=option)
    place = folder or os.getcwd()
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        found: object = importlib.import_module(module)
        for part in path.split('.'):
            found = getattr(found, part)
    except Exception as error:  # importing a program may raise anything
        msg = one_line(f'cannot load {name}: {type(error).__name__}: {error}', 500)
        raise typer.BadParameter(msg, param_hint=option) from None
    return found


def _built_in(name: str, tell: Callable[[str], None]) -> Toolset | None:
    """A toolset of Habilis that has a name of its own."""
    if name != 'web':
        return None
    from habilis.tools.web import WebToolset

    toolset = WebToolset()
    tell(f'web: {toolset.web.description}')
    return toolset


def load_tools(names: Iterable[str], *, folder: str | None = None, tell: Callable[[str], None] = say) -> list[AnyTool]:
    """The tools of `--tools`: functions, toolsets, and lists of them; `web` is ours. Raises `BadParameter`.

    `tell` is told in one line what they use.
    """
    tools: list[AnyTool] = []
    for name in names:
        found = _built_in(name, tell) or load_object(
            name, option='--tools', example='my_tools:search, or web', folder=folder
        )
        for one in found if is_list(found) or is_tuple(found) else [found]:
            if not isinstance(one, Toolset) and (not callable(one) or isinstance(one, type)):
                msg = f'{name} is of type {type(one).__name__}, not a function, a Toolset or a list of them'
                raise typer.BadParameter(msg, param_hint='--tools')
            tools.append(one)
    return tools
