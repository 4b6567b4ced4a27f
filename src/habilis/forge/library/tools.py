"""Tools of the library for an agent: each call runs in a fresh sandbox, never on the host."""

import ast
import logging
import time

from habilis.core.errors import ToolCallError
from habilis.forge.annotations import read_parameters
from habilis.forge.checks.calls import call_candidate
from habilis.forge.library.library import Library
from habilis.forge.source import definition_of
from habilis.tools import Tool
from habilis.tools.contract import ToolOptions

_log = logging.getLogger(__name__)


def library_tool(library: Library, name: str) -> Tool[..., object]:
    """A tool of the library as a tool for agents. Its calls are counted."""
    candidate, version = library.candidate(name), library.current(name)

    async def call(*args: object, **kwargs: object) -> object:
        if library.is_edited(name, version):
            _log.warning('%s was edited by hand after it was tested; check it with: habilis tools doctor', name)
        started = time.perf_counter()
        try:
            result = await call_candidate(candidate, args, kwargs)
        except ToolCallError:
            library.usage.record(name, version, ok=False, seconds=time.perf_counter() - started)
            raise
        library.usage.record(name, version, ok=True, seconds=time.perf_counter() - started)
        return result

    function = definition_of(candidate)
    signature = read_parameters(function)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = ast.get_docstring(function)
    call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    call.__annotations__ = {
        **{one.name: one.annotation for one in signature.parameters.values()},
        'return': signature.return_annotation,
    }
    return Tool(call, name=name, options=ToolOptions(as_sync=True))
