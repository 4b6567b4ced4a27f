"""Counts the frames of our code between two ends of a call: from the user's side in, to where the work is done.

A call crosses tasks, threads and generators. So all stacks of the process are read at the inner end, with the
coroutines that wait for each other; what was there at the outer end does not count.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from habilis import Agent, Sandbox, flow, step, tool
from habilis.cli.main import main
from habilis.forge.build.forge import BuildOptions, Forge
from habilis.forge.library.library import Library
from habilis.journal.stores.memory import MemoryStore
from habilis.models import ScriptedModel
from habilis.models.contract import NO_OPTIONS, Delta, Message, Options, Reply
from habilis.models.wrapper import WrapperModel
from habilis.sandbox.contract import Cell
from habilis.sandbox.host.cell_host import CellHost
from tests.house.repository import PACKAGE

_EVENT_LOOP = asyncio.BaseEventLoop.run_forever.__code__
_BACKGROUND = frozenset(
    {'Workers._next', 'WarmGuests._run', 'Ticker._run', 'Renewal._renew', 'StatusLine._animate', '_Watch._run'}
)
"""Functions of ours that run beside every call: the stack of such a thread, or of such a task, does not count."""


class Frames:
    """The frames between the outer end, where it is created, and the deepest inner end."""

    def __init__(self) -> None:
        self._outside = [*_live_frames()]  # kept, so that their ids stay theirs
        self.deepest: list[str] = []

    def reach(self) -> None:
        """Call this at the inner end."""
        known = {id(frame) for frame in self._outside}
        found = {id(frame): frame for frame in _live_frames()}
        ours = [_name(frame.f_code) for number, frame in found.items() if number not in known and _is_ours(frame)]
        self.deepest = max(self.deepest, ours, key=len)


def _live_frames() -> Iterator[FrameType]:
    """The frames of all threads that do something, and of all coroutines that wait."""
    stacks = [[*_stack(top)] for top in sys._current_frames().values()]  # pyright: ignore[reportPrivateUsage]
    loops = [frame.f_locals['self'] for stack in stacks for frame in stack if frame.f_code is _EVENT_LOOP]
    stacks += [[*_awaited(task.get_coro())] for loop in loops for task in asyncio.all_tasks(loop)]
    for stack in stacks:
        if _BACKGROUND.isdisjoint(frame.f_code.co_qualname for frame in stack):
            yield from stack


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _awaited(waiting: object) -> Iterator[FrameType]:
    """The frames of a coroutine, and of what it waits for."""
    while waiting is not None:
        prefix = next((prefix for prefix in ('cr', 'ag', 'gi') if hasattr(waiting, f'{prefix}_frame')), None)
        if prefix is None:
            return
        frame: FrameType | None = getattr(waiting, f'{prefix}_frame')
        if frame is not None:
            yield frame
        waiting = getattr(waiting, 'gi_yieldfrom' if prefix == 'gi' else f'{prefix}_await')


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(f'{PACKAGE}/')


def _name(code: CodeType) -> str:
    return f'{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_qualname}'


# The four ways --------------------------------------------------------------------------------------------------------


def frames_of_a_command(folder: Path) -> list[str]:
    """From `habilis run` to `Sandbox.run`, which runs the code of the model."""
    script = folder / 'replies.json'
    script.write_text('["```python\\nfinal_answer(6 * 7)\\n```"]')
    original = Sandbox.run

    async def run(self: Sandbox, code: str, **options: Any) -> Cell:
        frames.reach()
        return await original(self, code, **options)

    arguments = ['habilis', 'run', 'a task', '--model', f'scripted:{script}', '--journal', f'files:{folder / "runs"}']
    without_streams = patch('habilis.cli.main.prepare_streams')  # pytest has its own
    with patch.object(Sandbox, 'run', run), patch.object(sys, 'argv', arguments), without_streams:
        frames = Frames()
        with contextlib.suppress(SystemExit):
            main()
    return frames.deepest


async def frames_of_a_tool_call() -> list[str]:
    """From the message of a guest that calls a tool to the function, in a recorded run of an agent."""
    made: list[Frames] = []
    original = CellHost.answer

    def answer(self: CellHost, message: str) -> str:
        if message.startswith('c') and not made:
            made.append(Frames())
        return original(self, message)

    @tool
    def double(number: int) -> int:
        """Twice the number."""
        made[0].reach()
        return 2 * number

    model = ScriptedModel(['```python\nfinal_answer(double(21))\n```'])
    with patch.object(CellHost, 'answer', answer):
        async with Agent(model, tools=[double], journal=MemoryStore()) as agent:
            result = await agent.run('a task')
    assert result.output == 42
    return made[0].deepest


async def frames_of_a_step() -> list[str]:
    """From the function of a flow to the function of its step."""
    made: list[Frames] = []

    @step
    async def inner(number: int) -> int:
        made[0].reach()
        return number

    @flow
    async def outer(number: int) -> int:
        made.append(Frames())
        return await inner(number)

    run = await outer.start(7, journal=MemoryStore())
    assert await run.result() == 7
    return made[0].deepest


async def frames_of_a_build(folder: Path) -> list[str]:
    """From `Forge.build` to the request to the model."""

    class Watched(WrapperModel):
        async def stream(
            self, messages: Sequence[Message], options: Options = NO_OPTIONS
        ) -> AsyncGenerator[Delta | Reply, None]:
            frames.reach()
            yield await self.inner.request(messages, options)

    forge = Forge(Library(folder), Watched(ScriptedModel(_reply)), options=BuildOptions(candidates=1))
    frames = Frames()
    built = await forge.build('Reverse a text', ["reverse('ab') == 'ba'"], journal=MemoryStore())
    assert built.status == 'built', built.reason
    return frames.deepest


def _reply(messages: Sequence[Message]) -> str:
    said = messages[-1].text
    code = 'def reverse(text: str) -> str:\n    """The text backwards."""\n'
    if 'Design the function' in said:
        return f'```python\n{code}```'
    if 'Write tests' in said:
        pairs = {'': '', 'a': 'a', 'abc': 'cba', 'Hello there': 'ereht olleH'}
        tests = [f'def test_{n}():\n    assert reverse({a!r}) == {b!r}' for n, (a, b) in enumerate(pairs.items())]
        return '```python\n' + '\n\n'.join(tests) + '\n```'
    return f'```python\n{code}    return text[::-1]\n```'
