"""Random programs of steps: in a row, in parallel, nested, failing; and what plays them."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from hypothesis import strategies as st

from habilis.journal import Scope, current_scope, fingerprint

Sort = Literal[
    'leaf', 'fails', 'step', 'opened', 'below', 'group', 'gather', 'task_group', 'tasks', 'branches', 'calls', 'loop'
]
_INNER: tuple[Sort, ...] = (
    'step',
    'opened',
    'below',
    'group',
    'gather',
    'task_group',
    'tasks',
    'branches',
    'calls',
    'loop',
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """A piece of a program."""

    sort: Sort
    name: str
    parts: tuple['Node', ...] = ()


def _in_scope(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(parts, min_size=1, max_size=3).map(tuple)
    return st.builds(Node, sort=st.sampled_from(_INNER), name=st.sampled_from('ab'), parts=several)


def programs() -> st.SearchStrategy[Node]:
    """Programs of up to some dozen steps."""
    leaf: list[Sort] = ['leaf', 'leaf', 'fails']
    leaves = st.builds(Node, sort=st.sampled_from(leaf), name=st.sampled_from('ab'))
    several = st.lists(st.recursive(leaves, _in_scope, max_leaves=8), min_size=1, max_size=3).map(tuple)
    return st.builds(Node, sort=st.just('below'), name=st.just('program'), parts=several)


@dataclass
class Player:
    """Plays a program once. Every piece has a name of its own, by which it can be told whether its work was done."""

    random: Random
    worked: list[str] = field(default_factory=list[str])

    async def play(self, node: Node, name: str = '') -> object:
        """What comes of a program."""
        for _ in range(self.random.randrange(4)):  # branches begin in another order each time
            await asyncio.sleep(0)
        match node.sort:
            case 'leaf' | 'fails' | 'step' | 'opened':
                return await self._step(node, name)
            case 'below':
                with self._scope().below(node.name, key=fingerprint(name)).entered():
                    return await self._in_a_row(node, name)
            case 'group':
                async with self._scope().group(node.name, key=fingerprint(name)):
                    return await self._in_a_row(node, name)
            case 'loop':
                return [await self.play(node.parts[0], f'{name}.{number}') for number in range(3)]
            case 'branches':
                return await self._branches(node, name)
            case 'gather' | 'task_group' | 'tasks':
                return await self._parallel(node, name)
            case 'calls':
                scope = self._scope()
                calls = [self._call(scope, part, f'{name}.{number}') for number, part in enumerate(node.parts)]
                return list(await asyncio.gather(*calls))

    def _scope(self) -> Scope:
        scope = current_scope()
        assert scope is not None
        return scope

    async def _step(self, node: Node, name: str) -> object:
        opening = name if node.sort == 'opened' else None
        try:
            return await self._scope().step(
                node.name, lambda: self._work(node, name), key=fingerprint(name), opening=opening
            )
        except ValueError as error:
            return f'caught {error}'

    async def _call(self, scope: Scope, node: Node, name: str) -> object:
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        try:
            return await scope.call(node.name, lambda: self._work(node, name), key=fingerprint(name))
        except ValueError as error:
            return f'caught {error}'

    async def _work(self, node: Node, name: str) -> object:
        self.worked.append(fingerprint(name))
        inner = await self._in_a_row(node, name)
        if node.sort == 'fails':
            raise ValueError(name)
        return (name, inner)

    async def _in_a_row(self, node: Node, name: str) -> list[object]:
        return [await self.play(part, f'{name}.{number}') for number, part in enumerate(node.parts)]

    async def _parallel(self, node: Node, name: str) -> list[object]:
        plays = [self.play(part, f'{name}.{number}') for number, part in enumerate(node.parts)]
        if node.sort == 'gather':
            return list(await asyncio.gather(*plays))
        if node.sort == 'tasks':
            tasks = [asyncio.create_task(_as_coroutine(play)) for play in plays]
            return [await task for task in tasks]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_as_coroutine(play)) for play in plays]
        return [task.result() for task in tasks]

    async def _branches(self, node: Node, name: str) -> list[object]:
        around = self._scope().below(node.name, key=fingerprint(name))

        async def one(number: int, part: Node) -> object:
            with around.branch(number + 1).entered():
                return await self.play(part, f'{name}.{number}')

        return list(await asyncio.gather(*(one(number, part) for number, part in enumerate(node.parts))))


async def _as_coroutine(play: Awaitable[object]) -> object:
    return await play
