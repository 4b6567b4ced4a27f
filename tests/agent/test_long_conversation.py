"""H8: a chat of hundreds of turns is compacted again and again; facts from its beginning stay within reach."""

import json
from collections.abc import Sequence
from pathlib import Path

from habilis import Agent, ScriptedModel
from habilis.agent.events import AgentEvent, CompactedEvent
from habilis.agent.memory_tools import memory_tools
from habilis.memory import Memory
from habilis.models.contract import FunctionCall, Message, Reply
from habilis.models.tokens import count_message_tokens

CONTEXT = 4000
TURNS = 320
FACTS = {
    'Which berth is the boat Nordlicht moored at?': 'Our boat Nordlicht is moored at berth 47.',
    'What is the name of my dentist?': 'My dentist is called Dr. Okonkwo.',
    'How much is the rent of the studio?': 'The rent of the studio is 1,285 euros.',
}


def filler(number: int) -> str:
    return f'Topic {number}: the weather in town {number * 7 % 97} was grey, and the market sold {number} pears.'


def reply(messages: Sequence[Message]) -> Reply:
    """Ask the memory if told to, and say what was found; else a sentence."""
    last = messages[-1]
    if last.role == 'tool':
        return Reply(text=last.text)
    if last.text.startswith('RECALL '):
        arguments = json.dumps({'query': last.text.removeprefix('RECALL ')})
        return Reply(text='', calls=(FunctionCall(id='c', name='recall', arguments=arguments),), finish='calls')
    return Reply(text=f'Noted, after {len(messages)} messages. ' + 'All is well in this part of the world. ' * 3)


async def test_facts_planted_hundreds_of_turns_back_stay_within_reach(tmp_path: Path) -> None:
    model = ScriptedModel(reply, functions=True, context_tokens=CONTEXT)
    compacted: list[AgentEvent] = []
    said = [*FACTS.values(), *map(filler, range(TURNS))]

    def watch(event: AgentEvent) -> None:
        compacted.extend([event] if isinstance(event, CompactedEvent) else [])

    async with Memory(tmp_path / 'memory.db', user='ann') as memory:
        tools = [memory_tools(memory, 'chat')]
        agent = Agent(model, tools=tools, python=False, journal='off')
        async with agent, agent.conversation() as chat:
            for text in said:
                await memory.add_turn('chat', 'user', text)
                await chat.run(text, hooks=[watch])
            sizes = [count_message_tokens(request.messages) for request in model.requests]
            assert max(sizes) <= CONTEXT - 1024, 'the prompt always leaves room for a reply'
            assert min(sizes[-100:]) < max(sizes[:-100]) / 2, 'it shrinks'
            assert 3 <= len(compacted) < TURNS / 8, 'and does not change with each turn, for the cache'
            assert not any(fact in text_of(model.requests[-1].messages) for fact in FACTS.values()), 'they are gone'
            assert filler(TURNS - 1) in text_of(model.requests[-1].messages), 'what was said just now is not'
            for question, fact in FACTS.items():
                context = await memory.context_for(question, budget=200)
                assert fact in context.text
                await chat.run(f'{question}\n\n{context.text}')
                assert fact in model.requests[-1].messages[-1].text
                assert fact in (await chat.run(f'RECALL {question}')).unwrap()


def text_of(messages: Sequence[Message]) -> str:
    return '\n'.join(message.text for message in messages)
