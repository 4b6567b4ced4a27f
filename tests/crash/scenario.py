"""What is killed: a flow with a loop, a choice, branches, another flow, and an agent whose code calls tools and a flow.

Everything it does is an effect of its own, so that it can be counted.
"""

import asyncio
from collections.abc import Sequence

from habilis.agent import Agent
from habilis.core.limits import Limits
from habilis.flows import flow, parallel, step
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from habilis.tools import tool
from tests.crash.effects import happen

TARGET = 'tests.crash.scenario:shop'

_CELLS = (
    """
class Basket:
    def __init__(self):
        self.items = []
    def add(self, item):
        self.items.append(item)
        return self

def joined(parts):
    return '+'.join(parts)

basket = Basket().add(await look('apple'))
print(joined(basket.items))
""",
    """
import asyncio
found, ordered = await asyncio.gather(look('pear'), order('plum'))
basket.add(found).add(ordered)
print(joined(basket.items))
""",
    """
text = await report(joined(basket.items))
final_answer(joined([*basket.items, text]))
""",
)


# Steps ----------------------------------------------------------------------------------------------------------------


@step
async def fetch(name: str) -> str:
    """May be done again."""
    await asyncio.sleep(0)
    return happen(f'fetch {name}', name.upper())


@step
def weigh(name: str) -> str:
    """The same on a thread."""
    return happen(f'weigh {name}', f'{len(name)} g')


@step(idempotent=False)
async def pay(what: str) -> str:
    """Must not be done twice."""
    await asyncio.sleep(0)
    return happen(f'pay {what}', f'paid {what}', once=True)


@step
async def knock(door: str) -> str:
    """Fails."""
    happen(f'knock {door}', '')
    msg = f'nobody opens the {door}'
    raise LookupError(msg)


# Tools ----------------------------------------------------------------------------------------------------------------


@tool
async def look(name: str) -> str:
    """Look for something to buy."""
    await asyncio.sleep(0)
    return happen(f'look {name}', f'an {name}')


@tool(idempotent=False)
async def order(item: str) -> str:
    """Order something, for good."""
    await asyncio.sleep(0)
    return happen(f'order {item}', f'one {item}', once=True)


# Flows ----------------------------------------------------------------------------------------------------------------


@flow
async def report(topic: str) -> str:
    """Write a report, and send it."""
    draft = await fetch(f'draft of {topic}')
    sent = await pay(f'stamp for {draft}')
    return await fetch(f'receipt of {sent}')


@flow
async def deliver(name: str) -> list[str]:
    """The flow inside the flow."""
    first = await fetch(f'{name} by road')
    return [first, await pay(f'{name} toll'), await weigh(f'{name} load')]


async def _taste(name: str) -> str:
    if name == 'b':
        return '+'.join(await deliver(name))
    return f'{await fetch(name)}+{await weigh(name)}'


async def _buy() -> str:
    money = await fetch('money')
    model = ScriptedModel(_say)
    async with Agent(
        model,
        tools=[look, order, report.as_tool()],
        sandbox='wasm',
        # A store that is away for long is not the fault of the code.
        sandbox_settings={'limits': Limits(seconds=600)},
        workspace=True,
        journal='off',
        name='buyer',
    ) as buyer:
        result = await buyer.run(f'Buy fruit for {money}.')
    return str(result.output)


def _say(messages: Sequence[Message]) -> str:
    number = sum(message.role == 'assistant' for message in messages)
    happen(f'reply {number + 1}', '')
    return f'Step {number + 1}.\n```python\n{_CELLS[number].strip()}\n```'


async def _travel() -> list[str]:
    found = [await fetch('map')]
    found.append(await pay('ticket'))
    return [*found, *await deliver('car')]


@flow
async def shop(rounds: int = 2) -> dict[str, object]:
    """All of it."""
    found: list[str] = []
    for number in range(rounds):
        text = await fetch(f'round {number}')
        found.append(text)
    if found[-1] == 'ROUND 1':
        found.append(await pay('entrance'))
    else:
        found.append(await fetch('way out'))
    try:
        await knock('door')
    except LookupError as error:
        found.append(str(error))
    tasted = await parallel(_taste, ['a', 'b', 'c'])
    bought, travelled = await asyncio.gather(_buy(), _travel())
    found.append(await fetch('end'))
    return {'found': found, 'tasted': tasted, 'bought': bought, 'travelled': travelled}


STEPS = (fetch, weigh, pay, knock)
FLOWS = (shop, deliver, report)
