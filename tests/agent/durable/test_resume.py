"""A run that was cut anywhere and resumed is the run that was not."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from habilis.agent import Agent, Bounds, RunLimits
from habilis.core.errors import ContextOverflow, JournalError
from habilis.journal import MemoryStore
from habilis.models import FunctionCall, Message, Reply, ScriptedModel
from habilis.tools import Deny, GateCall, log, people_toolset, todo_toolset, tool
from tests.agent.durable.cutting import Effects, Scenario, check_all_cuts
from tests.agent.hooks.watching import code
from tests.journal.faults import PowerCut


@dataclass
class Point:
    x: int
    y: int


class Person(BaseModel):
    name: str
    age: int


def tools(effects: Effects) -> dict[str, Any]:
    """Tools that say what they do."""

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        effects.append(f'add {a} {b}')
        log(f'adding {a} and {b}')
        return a + b

    @tool
    async def fetch(name: str) -> str:
        """Fetch."""
        effects.append(f'fetch {name}')
        await asyncio.sleep(0)
        return f'page of {name}'

    @tool(idempotent=False)
    async def send(to: str) -> str:
        """Send."""
        effects.append(f'send {to}')
        return f'sent to {to}'

    @tool
    def broken(text: str) -> str:
        """Fail."""
        effects.append(f'broken {text}')
        raise LookupError(text)

    @tool(on_error='none')
    def weak(text: str) -> str:
        """Fail, unseen by the code."""
        effects.append(f'weak {text}')
        raise LookupError(text)

    @tool(side='model')
    def lookup(word: str) -> str:
        """Look up."""
        effects.append(f'lookup {word}')
        log(f'looking for {word}')
        log('found')
        return word.upper()

    @tool
    def refused(text: str) -> str:
        """Is denied."""
        effects.append('never')
        return text

    def gate(call: GateCall) -> Deny | None:
        return Deny('not this one') if call.tool == 'refused' else None

    made = [add, fetch, send, broken, weak, lookup, refused, todo_toolset(), people_toolset()]
    return dict[str, Any](tools=made, gates=[gate])


def calls(*sources: str) -> Reply:
    made = [FunctionCall(id=f'c{n}', name='python', arguments=source) for n, source in enumerate(sources)]
    return Reply(calls=tuple(made), finish='calls')


def limited(effects: Effects, limits: RunLimits) -> dict[str, Any]:
    options = tools(effects)
    options['limits'] = limits
    return options


def with_approvals(effects: Effects) -> dict[str, Any]:
    @tool(needs_approval=True)
    def remove(name: str) -> str:
        """Remove."""
        effects.append(f'remove {name}')
        return f'removed {name}'

    @tool(needs_approval=True, idempotent=False)
    async def wipe(name: str) -> str:
        """Wipe."""
        effects.append(f'wipe {name}')
        return f'wiped {name}'

    @tool(needs_approval=True, side='model')
    def publish(text: str) -> str:
        """Publish."""
        effects.append(f'publish {text}')
        return f'published {text}'

    options = tools(effects)
    options['tools'] = [*options.get('tools', ()), remove, wipe, publish]
    return options


SCENARIOS = {
    'code in fences': Scenario(
        replies=[
            code('x = add(1, 2)\nprint(x)'),
            code("y = x * 10\nr = await send('ann')\nprint(y, r)"),
            code('final_answer(y + x)'),
        ],
        options=tools,
    ),
    'functions and classes': Scenario(
        replies=[
            code('import math\ndef area(r): return round(math.pi * r * r, 2)\nsquare = lambda n: n * n'),
            code('class Shape:\n    sides = 4\n    def twice(self): return self.sides * 2\nshape = Shape()'),
            code('shape.sides = 5\nprint(area(1), square(3))'),
            code('final_answer((area(2), square(4), shape.twice(), type(shape).__name__))'),
        ],
    ),
    'calls in loops and at the same time': Scenario(
        replies=[
            code('total = 0\nfor n in range(3):\n    total += add(n, n)\n    total += add(1, 1)\nprint(total)'),
            code("import asyncio\npages = await asyncio.gather(*(fetch(n) for n in ['a', 'b', 'a']))\nprint(pages)"),
            code("sent = await asyncio.gather(send('a'), send('b'))\nfinal_answer([total, pages, sent])"),
        ],
        options=tools,
    ),
    'calls that fail': Scenario(
        replies=[
            code("try:\n    broken('a')\nexcept LookupError as e:\n    print('caught', e)\nn = add(1, 1)"),
            code("w = weak('b')\ntry:\n    refused('c')\nexcept Exception as e:\n    print(e, w)\nadd(2, 2)"),
            code("broken('d')"),
            code('final_answer(n)'),
        ],
        options=tools,
    ),
    'a model that calls functions': Scenario(
        functions=True,
        replies=[
            Reply(calls=(FunctionCall(id='1', name='lookup', arguments='{"word": "a"}'),), finish='calls'),
            Reply(
                calls=(
                    FunctionCall(id='2', name='python', arguments='{"code": "x = add(1, 2)\\nprint(x)"}'),
                    FunctionCall(id='3', name='lookup', arguments='{"word": "b"}'),
                    FunctionCall(id='4', name='python', arguments='{"code": "y = add(x, 2)\\nprint(y)"}'),
                    FunctionCall(id='5', name='nonsense', arguments='{'),
                ),
                finish='calls',
            ),
            Reply(text='Now the end.', calls=(FunctionCall(id='6', name='python', arguments='{"code": "x + y"}'),)),
            'The answer is 8.',
        ],
        options=tools,
    ),
    'code that fails and is repaired': Scenario(
        replies=[
            code('v = 1\n1 / 0'),
            code('v += 1\nundefined_name'),
            code('v += 1\nprint(v)'),
            code('final_answer(v)'),
        ]
    ),
    'replies that cannot be used': Scenario(
        replies=['', code('k = 2\nprint(k)'), '', '```python\nfor', 'I will do it soon.', code('final_answer(k)')]
    ),
    'None is an answer': Scenario(functions=True, replies=[calls('{"code": "final_answer(None)"}')]),
    'verdicts of the policy for small models': Scenario(
        options=lambda effects: {**tools(effects), 'policy': 'small'},
        replies=[
            '',
            code('1 / 0'),
            code('1 / 0  # again'),
            code('print(1)'),
            code('print(1)'),
            'It is one.',
            code('final_answer(1)'),
        ],
    ),
    'a dataclass, after repairs': Scenario(
        output_type=Point,
        replies=[code("final_answer('x')"), 'It is 1 and 2.', code("final_answer({'x': 1, 'y': 2})")],
    ),
    'a pydantic model, in words': Scenario(output_type=Person, replies=[code('print(1)'), '{"name": "Ann", "age": 7}']),
    'artifacts and variables': Scenario(
        run=dict[str, Any](
            artifacts={'notes': 'the notes', 'long': 'x' * 100_000},
            variables={'rows': [(1, 'a'), (2, b'b')], 'left': {'a': 1}},
        ),
        replies=[
            code("print(len(artifacts['long']), rows[0])"),
            code("rows.append((3, 'c'))\ndel left\nprint(rows)"),
            code("final_answer([artifacts['notes'], len(rows)])"),
        ],
    ),
    'a summary': Scenario(
        options=lambda effects: dict[str, Any](summary='default'),
        replies=[code('print(5)'), code('final_answer(5)'), 'I printed five.'],
    ),
    'shortened before it is too long': Scenario(
        context_tokens=6000,
        options=lambda effects: dict[str, Any](observations=Bounds(tokens=700)),
        replies=[*(code(f"z{n} = {n}\nprint('word {n} ' * 300)") for n in range(9)), code('final_answer(z0 + z8)')],
    ),
    'summarized before it is too long': Scenario(
        context_tokens=100_000,
        options=lambda effects: dict[str, Any](observations=Bounds(tokens=30_000)),
        replies=[
            *(code(f"z{n} = {n}\nprint('word ' * 15_000)") for n in range(6)),
            'Goal: a sum\nDecisions: none\nFacts: none\nOpen: the sum\nVariables: z0 to z5',
            code('final_answer(z0 + z5)'),
        ],
    ),
    'shortened when it was too long': Scenario(
        replies=[
            *(code(f"z{n} = {n}\nprint('word {n} ' * 300)") for n in range(5)),
            ContextOverflow('too long'),
            code('final_answer(z0 + z4)'),
        ],
    ),
    'stopped at limits': Scenario(
        options=lambda effects: limited(effects, RunLimits(steps=2)),
        replies=[code(f'n{n} = add({n}, 1)\nprint(n{n})') for n in range(5)] + [code('final_answer(n4)')],
    ),
    'stopped by too many calls': Scenario(
        options=lambda effects: limited(effects, RunLimits(tool_calls=2)),
        replies=[code(f'n{n} = add({n}, 1)\nprint(n{n})') for n in range(3)] + [code('final_answer(n1)')],
    ),
    'questions': Scenario(
        options=tools,
        replies=[
            code('x = add(1, 1)\nwho = ask_user("Who?")'),
            code('try:\n    ask_user("Really?")\nexcept BaseException as e:\n    print("asked")\ny = 4'),
            code('final_answer([x, y])'),
        ],
    ),
    'the todo list': Scenario(
        options=tools,
        replies=[
            code("todo_write([{'id': 1, 'text': 'a', 'status': 'pending'}])"),
            code("try:\n    todo_write([{'id': 1}])\nexcept Exception:\n    print('no')"),
            code("print(todo_read())\ntodo_write(todo_read() + [{'id': 2, 'text': 'b', 'status': 'completed'}])"),
            code('add(1, 2)\nfinal_answer(todo_read())'),
        ],
    ),
    'values of all kinds': Scenario(
        replies=[
            code('import datetime, decimal\n(1, {2, 3}, b"bytes", datetime.date(2024, 1, 2), {(1, 2): None}, 1e400)'),
            code("display({'a': 1})\nclass H:\n    def _repr_html_(self): return '<b>x</b>'\ndisplay(H())"),
            code("class R:\n    def __repr__(self): return 'an R'\nR()"),
            code("float('nan') != float('nan'), 10**400, '\\ud800', complex(1, 2)"),
            code('final_answer((1, {2}, b"x", datetime.date(2024, 1, 2), decimal.Decimal("1.5")))'),
        ],
    ),
    'large results': Scenario(
        options=tools,
        replies=[
            code("'x' * 300_000"),
            code("big = ['row %d' % n for n in range(30_000)]\nbig"),
            code("add(len(big), 1)\nprint('y' * 100_000)"),
            code('final_answer(len(big))'),
        ],
    ),
    'approvals': Scenario(
        options=with_approvals,
        replies=[
            code("a = add(1, 1)\nb = remove('x')\nc = add(2, 2)\nprint(a, b, c)"),
            code("import asyncio\nd = await asyncio.gather(wipe('y'), wipe('z'), fetch('q'))\nprint(d)"),
            code('final_answer([a, b, c, d])'),
        ],
    ),
    'an approval for the model': Scenario(
        functions=True,
        options=with_approvals,
        replies=[
            Reply(
                calls=(
                    FunctionCall(id='1', name='lookup', arguments='{"word": "a"}'),
                    FunctionCall(id='2', name='publish', arguments='{"text": "b"}'),
                    FunctionCall(id='3', name='python', arguments='{"code": "x = add(1, 2)\\nprint(x)"}'),
                ),
                finish='calls',
            ),
            'Done.',
        ],
    ),
    'history': Scenario(
        run=dict[str, Any](history=(Message(role='user', text='I am Ann.'), Message(role='assistant', text='Hello.'))),
        replies=[code('print(1)'), code("final_answer('Ann')")],
    ),
    'small answers in doubt': Scenario(
        replies=[
            code("final_answer('I do not know')"),
            code('n = 3\nprint(n)'),
            code('print(n)'),
            code('final_answer(n)'),
        ]
    ),
}


@pytest.mark.parametrize('name', SCENARIOS)
async def test_a_run_truncated_after_any_record_resumes_to_the_same_end_and_repeats_nothing(
    name: str, protocol: str
) -> None:
    await check_all_cuts(SCENARIOS[name], MemoryStore(), every=1 if protocol == 'fence' else 3)


async def test_another_message_after_a_crash_says_that_the_code_may_have_run() -> None:
    """The code ran to its end, and the record of it was lost: nobody can say that it was stopped before."""
    store, made = PowerCut(), list[str]()

    def send(text: str) -> None:
        """Send."""
        made.append(text)

    async with Agent(ScriptedModel([code('x = 1\nsend("a")')]), tools=[send], journal=store) as agent:
        with pytest.raises(JournalError):
            await agent.run('go', run_id='run-1')
    store.on = False
    model = ScriptedModel(['Done.'])
    async with Agent(model, tools=[send], journal=store) as agent:
        assert (await agent.resume('run-1', 'Go on.')).output == 'Done.'
    *_, seen, said = (message.text for message in model.requests[0].messages)
    assert 'it may have run, in part or to its end, or not' in seen
    assert 'All variables are as before this code; its tool calls and changes of files are not undone.' in seen
    assert (said, made) == ('Go on.', ['a'])


async def test_a_variable_that_could_not_be_saved_is_named_when_the_code_misses_it() -> None:
    store = MemoryStore()
    replies = [code('lines = (n for n in range(3))\nk = 5'), code('next(lines)'), code('final_answer(k)')]

    def reply(messages: Sequence[Message]) -> str:
        return replies[sum(message.role == 'assistant' for message in messages)]

    async with Agent(ScriptedModel(reply), journal=store) as agent:
        stopped = await agent.run('Go on.', run_id='run-1', max_steps=1)
    async with Agent(ScriptedModel(reply), journal=store) as agent:
        result = await agent.resume(stopped.run_id, max_steps=5)
    assert result.output == 5
    assert 'lines was lost' in (result.steps[1].observation or '')
