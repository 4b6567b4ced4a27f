"""Call the function of a tool: always in a fresh sandbox, never on the host."""

from collections.abc import Mapping

from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.forge.annotations import read_parameters
from habilis.forge.checks.verification import guest_code, packages_of, request_of, used_tools
from habilis.forge.contract import Candidate
from habilis.forge.source import definition_of
from habilis.sandbox import Sandbox

LIMITS = Limits(seconds=10, memory_mb=256)
"""Of one call."""


async def call_candidate(candidate: Candidate, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """Call the function of a candidate in a fresh sandbox. Raises `ToolCallError` with the error of the code."""
    if candidate.language == 'javascript':
        from habilis.forge.javascript import running  # not above: it loads the engine and the downloader

        signature = read_parameters(definition_of(candidate))
        return await running.call(candidate, used_tools(candidate), signature, (args, kwargs), limits=LIMITS)
    request = {**request_of(candidate), 'args': list(args), 'kwargs': dict(kwargs)}
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
