"""The sandboxes of a run: one made for it, one that is shared, or several."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from habilis.agent.context.truncation import Bounds, cut
from habilis.core.errors import AgentError, ToolCallError
from habilis.sandbox import Sandbox
from habilis.sandbox.options import Settings as SandboxSettings
from habilis.tools import tool

MOVING = frozenset({'run_in', 'copy_file'})
"""The tools that work on several sandboxes."""

SandboxChoice = str | Sandbox | Mapping[str, Sandbox]
"""The name of a backend (a new sandbox for each run), one to use, or several by name (the first runs the code)."""


@dataclass(kw_only=True)
class Rooms:
    """Where the code of a run goes."""

    main: Sandbox
    others: Mapping[str, Sandbox] = field(default_factory=dict[str, Sandbox])
    main_name: str = 'main'
    owned: bool = False

    @property
    def everyone(self) -> dict[str, Sandbox]:
        """All of them by name."""
        return {self.main_name: self.main, **self.others}

    async def close(self) -> None:
        """Close what was made for this run."""
        if self.owned:
            await self.main.close()

    def tools(self, bounds: Bounds) -> Sequence[Callable[..., object]]:
        """What moves work and files between several sandboxes."""
        return _moving_tools(self, bounds) if self.others else ()


async def open_rooms(choice: SandboxChoice, settings: SandboxSettings) -> Rooms:
    """Have the sandboxes ready."""
    if isinstance(choice, str):
        return Rooms(main=await Sandbox.create(choice, **settings), owned=True)
    if isinstance(choice, Sandbox):
        return Rooms(main=choice)
    if not choice:
        msg = 'an agent needs at least one sandbox'
        raise AgentError(msg)
    (name, main), *others = choice.items()
    return Rooms(main=main, main_name=name, others=dict(others))


def _moving_tools(rooms: Rooms, bounds: Bounds) -> Sequence[Callable[..., object]]:
    everyone = rooms.everyone

    def named(name: str) -> Sandbox:
        if name not in everyone:
            msg = f'there is no sandbox {name!r}; there is {", ".join(map(repr, everyone))}'
            raise ToolCallError(msg)
        return everyone[name]

    async def run_in(sandbox: str, code: str) -> str:
        """Run Python code in another sandbox; gives back what it printed and the value of its last line."""
        if sandbox == rooms.main_name:
            msg = f'your code runs in {sandbox!r} already: write it without run_in'
            raise ToolCallError(msg)
        cell = await named(sandbox).run(code)
        if cell.error is not None:
            raise ToolCallError(f'in {sandbox!r}: {cell.error.traceback.strip() or cell.error}')
        return cut(f'{cell.stdout}{cell.text or ""}'.rstrip('\n'), bounds).text

    async def copy_file(path: str, source: str, target: str) -> str:
        """Copy a file from the workspace of one sandbox to another's."""
        data = await named(source).download(path)
        await named(target).upload(path, data)
        return f'{path}: {len(data):,} bytes copied from {source} to {target}'

    others = ', '.join(map(repr, rooms.others))
    run_in.__doc__ = f'{run_in.__doc__} Yours is {rooms.main_name!r}; there is also {others}.'
    # Not answered from the record: what they change is in the sandboxes, and is brought back with those.
    return (tool(as_sync=True, in_memory=True)(run_in), tool(as_sync=True, in_memory=True)(copy_file))


async def close_all(rooms: Sequence[Rooms]) -> None:
    """Close several, also if one of them fails."""
    results = await asyncio.gather(*(room.close() for room in rooms), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
