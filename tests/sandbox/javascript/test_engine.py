"""The instance that JavaScript runs in. What it imports from the host is all that it can reach."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from habilis.core.limits import Limits
from habilis.forge.javascript.installation import javascript_engine
from habilis.sandbox.contract import GuestDied
from habilis.sandbox.host.workers import WORKERS
from habilis.sandbox.javascript.engine import JavaScriptEngine, JavaScriptGuest, Thrown

T = TypeVar('T')
LIMITS = Limits(seconds=30, memory_mb=64)


@pytest.fixture
async def engine(quickjs: None) -> JavaScriptEngine:
    return await javascript_engine()


async def on_worker(engine: JavaScriptEngine, work: Callable[[JavaScriptGuest], T], **modules: str) -> T:
    def run() -> T:
        with JavaScriptGuest(engine, LIMITS, modules) as guest:
            return work(guest)

    return await WORKERS.submit(run)


async def test_scripts_modules_and_calls(engine: JavaScriptEngine) -> None:
    def work(guest: JavaScriptGuest) -> list[str]:
        greet = guest.get(guest.load('import { a } from "a"; export const greet = (x) => a + x;', 'm.js'), 'greet')
        return [guest.text(guest.evaluate('"1" + 1', 's.js')), guest.text(guest.apply(greet, guest.string('é\0')))]

    assert await on_worker(engine, work, a='export const a = "hello ";') == ['11', 'hello é\0']


async def test_a_thrown_value_and_a_missing_module(engine: JavaScriptEngine) -> None:
    def work(guest: JavaScriptGuest) -> list[str]:
        texts: list[str] = []
        for code in ('throw "no"', 'import "std"'):
            with pytest.raises(Thrown) as thrown:
                guest.load(code, 'm.js')
            texts.append(guest.text(thrown.value.value))
        return texts

    assert await on_worker(engine, work) == [
        'no',
        'there is no module \'std\'; a tool can import other tools from "library", and nothing else',
    ]


async def test_an_instance_is_interrupted_from_another_thread(engine: JavaScriptEngine) -> None:
    started = threading.Event()
    guest = JavaScriptGuest(engine, LIMITS, {})

    def run() -> None:
        with guest:
            started.set()
            guest.evaluate('for (;;) {}', 's.js')

    job = WORKERS.submit(run)
    await asyncio.to_thread(started.wait)
    guest.interrupt()
    with pytest.raises(GuestDied, match='interrupted') as died:
        await job
    assert died.value.kind == 'cancelled'


async def test_it_needs_the_stack_of_a_worker(engine: JavaScriptEngine) -> None:
    with pytest.raises(RuntimeError, match='deep stack'), JavaScriptGuest(engine, LIMITS, {}):
        pass


async def test_what_is_no_text_is_not_read(engine: JavaScriptEngine) -> None:
    def work(guest: JavaScriptGuest) -> None:
        guest.text(guest.evaluate('({ toString() { for (;;) {} } })', 's.js'))

    with pytest.raises(GuestDied, match='something else than text'):
        await on_worker(engine, work)
