"""Tools of the library for an agent: each call runs in a fresh sandbox, never on the host."""

import ast
import time
from collections.abc import Mapping
from typing import Any

from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.forge.annotations import read_parameters
from habilis.forge.contract import Candidate
from habilis.forge.library import Library
from habilis.forge.source import definition_of
from habilis.forge.verification import guest_code, packages_of, request_of, used_tools
from habilis.sandbox import Sandbox
from habilis.tools import Tool
from habilis.tools.contract import ToolOptions

LIMITS = Limits(seconds=10, memory_mb=256)
"""Of one call."""


async def call_candidate(candidate: Candidate, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """Call the function of a candidate in a fresh sandbox. Raises `ToolCallError` with the error of the code."""
    if candidate.language == 'javascript':
        from habilis.forge.javascript import running  # not above: it loads the engine and the downloader

        signature = read_parameters(definition_of(candidate))
        return await running.call(candidate, used_tools(candidate), signature, (args, kwargs), limits=LIMITS)
    request = {**request_of(candidate), 'name': candidate.name, 'args': list(args), 'kwargs': dict(kwargs)}
    sandbox = await Sandbox.create(
        limits=LIMITS, packages=packages_of(candidate), variables={'forge_request': request}, checkpoints=False
    )
    async with sandbox:
        cell = await sandbox.run(f'{await guest_code()}\n_call(forge_request)')
    if cell.error is not None:
        raise ToolCallError(f'{candidate.name}: {cell.error}')
    if cell.value is None and cell.text is not None:
        msg = f'{candidate.name} returned {cell.text[:200]}, which is not plain data'
        raise ToolCallError(msg)
    return cell.value


def library_tool(library: Library, name: str) -> Tool[..., Any]:
    """A tool of the library as a tool for agents. Its calls are counted."""
    candidate, version = library.candidate(name), library.current(name)

    async def call(*args: object, **kwargs: object) -> object:
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
