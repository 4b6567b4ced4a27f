"""What a run that has ended leaves in memory."""

import gc

import pytest

from habilis import Agent, ScriptedModel
from habilis.agent.events import AgentEvent
from habilis.journal import MemoryStore
from tests.agent.scripts import block


def price(item: str) -> int:
    """The price of an item."""
    return len(item)


@pytest.mark.parametrize('hooked', [False, True])
async def test_a_run_that_has_ended_is_freed_without_the_garbage_collector(hooked: bool) -> None:
    seen: list[AgentEvent] = []
    model = ScriptedModel([block("x = price('cup')"), block('final_answer(x)')])
    model.reply_by_turn()
    agent = Agent(model, tools=[price], journal=MemoryStore(), hooks=[lambda event: seen.clear()] if hooked else [])
    await agent.run('What does a cup cost?')  # what is made once is made
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert (await agent.run('What does a cup cost?')).output == 3
        gc.collect()
        left = {type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith('habilis')}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert left == set()
    await agent.close()
