"""Flows for processes that are killed. Each effect is a line in a file; a step waits while a file of its name is there.

The folder is that of the variable `FLOWS_FOLDER`.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

from habilis.flows import Workflow, approval, flow, parallel, step


def folder() -> Path:
    return Path(os.environ['FLOWS_FOLDER'])


def note(name: str) -> None:
    """One effect, in one write."""
    with (folder() / 'effects').open('ab', buffering=0) as file:
        file.write(f'{name}\n'.encode())


@step
async def effect(name: str) -> str:
    note(name)
    hold = folder() / f'hold-{name}'
    if hold.exists():
        (folder() / f'reached-{name}').touch()
        while hold.exists():  # noqa: ASYNC110 - another process removes it
            await asyncio.sleep(0.01)
    return name.upper()


@step(idempotent=False)
async def pay(name: str) -> str:
    return await effect.function(name)


@flow
async def inner(name: str) -> list[str]:
    return [await effect(f'{name}-1'), await effect(f'{name}-2')]


@flow
async def everything(name: str) -> list[str]:
    """Steps, a flow in a flow, tasks side by side, a parallel map and a loop."""
    found = [await effect(f'{name}-begin'), *await inner(f'{name}-inner')]
    left, right = await asyncio.gather(inner(f'{name}-left'), effect(f'{name}-right'))
    found += [*left, right]
    found += await parallel(effect, [f'{name}-map{number}' for number in range(4)], limit=2)
    for number in range(2):
        found.append(await effect(f'{name}-round{number}'))
    return found


def all_effects(name: str) -> list[str]:
    ends = 'begin inner-1 inner-2 left-1 left-2 right map0 map1 map2 map3 round0 round1'
    return [f'{name}-{end}' for end in ends.split()]


@flow
async def buy(name: str) -> str:
    return await pay(name)


@flow
async def publish(name: str) -> str:
    return await effect(f'{name}-yes' if await approval('Publish?') else f'{name}-no')


@flow
async def fails(name: str) -> str:
    await effect(name)
    raise ValueError(name)


@flow
async def kills(name: str) -> str:
    """Takes its process with it."""
    note(name)
    os.kill(os.getpid(), signal.SIGKILL)
    return name


@step
async def block(name: str) -> str:
    """Blocks its event loop while a file is there."""
    note(name)
    (folder() / f'reached-{name}').touch()
    while (folder() / f'hold-{name}').exists():
        time.sleep(0.01)  # noqa: ASYNC251 - that is the fault to survive
    return name.upper()


@flow
async def blocks(name: str) -> str:
    return await block(name)


def length(input: str) -> int:
    note(input)
    return len(input)


measured = Workflow('measure', input_type=str).step(length)
