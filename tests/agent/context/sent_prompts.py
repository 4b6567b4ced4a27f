"""Prompts as real runs send them: each kind of run with a scripted model, and the messages of its last request."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.mcp.sample_tools import toolsets
from habilis.agent import Agent
from habilis.agent.context.compaction import Compaction
from habilis.agent.context.conversation import Conversation
from habilis.assistant import Session
from habilis.forge.build.speedups import optimise
from habilis.forge.library.library import Library
from habilis.journal import MemoryStore
from habilis.memory import Memory
from habilis.models import FunctionCall, Message, Reply, ScriptedModel
from habilis.tools import tool
from tests.agent.scripts import as_call, block
from tests.forge.build.test_forge import CODE, WRONG, Builder, forge

SALES = 'day,amount\nMon,3\nTue,4\n'
DATE = '2030-01-31'
"""In place of today."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a shop asks for an item."""

    item: str
    price: float


@tool
def price_of(item: str) -> float | None:
    """The price in euros; None if there is none."""
    return {'tea': 2.5}.get(item)


def model(replies: Sequence[str | Reply], *, functions: bool = False, small: bool = False) -> ScriptedModel:
    """A model that writes code in fences, or calls functions."""
    given = [reply if isinstance(reply, Reply) else Reply(text=reply) for reply in replies]
    calls = [as_call(reply, number) if functions else reply for number, reply in enumerate(given)]
    return ScriptedModel(calls, functions=functions, small=small)


def shown(messages: Sequence[Message]) -> str:
    """The messages as text, with today's date replaced."""
    parts: list[str] = []
    for message in messages:
        calls = [f'{call.name}({json.loads(call.arguments)})' for call in message.calls]
        parts.append('\n'.join(filter(None, [f'=== {message.role}', message.text, *calls])))
    return '\n\n'.join(parts).replace(datetime.now().astimezone().date().isoformat(), DATE)


def last(scripted: ScriptedModel) -> str:
    """The last request."""
    return shown(scripted.requests[-1].messages)


async def sent_prompts(folder: Path) -> dict[str, str]:
    """All kinds, by name."""
    return {
        **await _runs(folder),
        **await _talks(folder),
        **await _subagents(folder),
        'compacted': _compacted(),
        **await _forge(folder),
    }


async def _runs(folder: Path) -> dict[str, str]:
    """Runs that go wrong in several ways: words before any code, an error, an empty reply, a wrong type."""
    (folder / 'work').mkdir()
    (folder / 'work' / 'sales.csv').write_text(SALES)
    replies = ["I'll look at the data.", block('print(total)'), '', block('final_answer(1)')]
    found: dict[str, str] = {}
    for name, traits in {'fence': {}, 'call': {'functions': True}, 'small': {'small': True}}.items():
        scripted = model(replies, **traits)
        async with Agent(scripted, tools=[price_of], workspace=folder / 'work', journal='off') as agent:
            await agent.run('Add up the sales.', variables={'table': SALES})
        found[f'run_{name}'] = last(scripted)
    kinds: list[tuple[str, dict[str, Any], list[str]]] = [
        ('output', {'output_type': Offer}, ['Tea is 2.5 euros.', block('final_answer(Offer("tea", 2.5))')]),
        ('library', {'library': folder / 'empty'}, [block('final_answer(1)')]),
        ('many_tools', {'tools': toolsets(1000)}, [block('final_answer(1)')]),
        ('many_functions', {'tools': toolsets(1000), 'python': False}, ['Seven.']),
        ('no_python', {'python': False, 'output_type': int}, ['Seven.', '7']),
    ]
    for name, options, replies in kinds:
        given = [*replies, block('final_answer({"item": "tea", "price": 2.5})')]
        scripted = model(given, functions=options.get('python') is False)
        async with Agent(scripted, journal='off', **options) as agent:
            await agent.run('What is it?')
        found[f'run_{name}'] = last(scripted)
    return found


async def _talks(folder: Path) -> dict[str, str]:
    """The first message of a chat with a memory, and a second one, which says nothing twice."""
    found: dict[str, str] = {}
    for name, small in (('talk_general', False), ('talk_small', True)):
        async with Memory(folder / f'{name}.db') as memory:
            await memory.add_fact('The boat is blue', 'preference')
            scripted = model(['Blue.', 'You are welcome.'], functions=not small, small=small)
            async with Session(scripted, memory=memory, journal=MemoryStore(), workspace=folder / 'work') as chat:
                await chat.send('My boat?')
                await chat.send('Thanks.')
        found[name] = last(scripted)
    return found


async def _subagents(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in ('code', 'research'):
        arguments = json.dumps({'code': f'final_answer(await delegate("Add up the sales.", {kind!r}))'})
        call = Reply(calls=(FunctionCall(id='1', name='python', arguments=arguments),), finish='calls')
        scripted = model([call, block('final_answer(7)')], functions=True)
        async with Memory(folder / f'{kind}.db') as memory:
            options: dict[str, Any] = {'workspace': folder / 'work', 'helpers': True, 'tools': [price_of]}
            async with Session(scripted, memory=memory, journal=MemoryStore(), **options) as chat:
                await chat.send('Do it.')
        found[f'subagent_{kind}'] = last(scripted)
    return found


def _compacted() -> str:
    conversation = Conversation('(system prompt)', [Message(role='user', text='Hello.')])
    conversation.add_task('Add up the sales.', situation=f'Today is {DATE}.', note='', note_without_stop='')
    for number in range(5):
        conversation.add(Message(role='assistant', text=block(f'print({number})')))
        conversation.add(Message(role='user', text=f'Output:\n{number} {"and more " * 30}'))
    conversation.compact(Compaction(keep=1))
    return shown(conversation.outgoing())


async def _forge(folder: Path) -> dict[str, str]:
    """The first message of each stage of a build, of a reuse and of an optimisation."""
    library, store = Library(folder / 'library'), MemoryStore()
    building = Builder(implement=WRONG, repair=CODE)
    await forge(library, building).build('Reverse a string', journal=store)
    using = Builder(
        compute="```python\nanswer = 'nohtyP'\n```",
        call="```python\nreverse_string('Python')\n```",
        confirm_call='YES',
        words='It is nohtyP.',
    )
    again = forge(Library(library.folder), using)
    await again.answer("Reverse 'Python'", (await again.build("Reverse 'Python'", journal=store)).name)
    faster = ScriptedModel([CODE] * 3)
    await optimise(library, faster, 'reverse_string')
    stages = [*zip(using.stages, using.prompts, strict=True), *zip(building.stages, building.prompts, strict=True)]
    found = {f'forge_{stage.replace(" ", "_")}': text.strip() for stage, text in reversed(stages)}
    return {**found, 'forge_optimise': shown(faster.requests[0].messages)}
