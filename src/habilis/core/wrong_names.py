"""Attributes that people know from other libraries, and what to use here."""

from collections.abc import Iterable, Mapping

from habilis.core.similar_names import similar_names

_RUN = 'use `Agent(…).run_sync(task)`, or `await Agent(…).run(task)`'
_STREAM = 'use `async for event in agent.stream(task)`'
_RUN_SYNC = 'use `agent.run_sync(task)`'
_AWAIT_RUN = 'use `await agent.run(task)`'
_CHAT = 'use `async with agent.conversation() as chat`'
_OUTPUT = 'use `result.output`, or `result.unwrap()`, which raises if there is no answer'
_MESSAGES = 'use `result.messages`'

WRONG_NAMES: Mapping[str, Mapping[str, str]] = {
    'habilis': {
        'CodeAgent': 'use `habilis.Agent`',
        'ToolCallingAgent': 'use `habilis.Agent(python=False)`',
        'Runner': _RUN,
        'run': _RUN,
        'run_sync': _RUN,
        'function_tool': 'use `@habilis.tool`',
        'Tool': 'use `@habilis.tool`',
        'RunContext': 'use `habilis.Context`',
        'UsageLimits': 'use `habilis.RunLimits`',
    },
    'Agent': {
        'run_stream': _STREAM,
        'stream_text': _STREAM,
        'run_streamed': _STREAM,
        'iter': 'use `await agent.start(task)`, then `await run.step()`',
        'chat': _CHAT,
        'session': _CHAT,
        'invoke': _RUN_SYNC,
        'execute': _RUN_SYNC,
        'query': _RUN_SYNC,
        'kickoff': _RUN_SYNC,
        'ainvoke': _AWAIT_RUN,
        'arun': _AWAIT_RUN,
        'tool_plain': 'use `@agent.tool`',
        'add_tool': 'use `@agent.tool`',
        'result_validator': 'use `@agent.output_validator`',
        'system_prompt': 'pass Agent(instructions=…), a text or a function',
    },
    'Result': {
        'final_output': _OUTPUT,
        'final_answer': _OUTPUT,
        'answer': _OUTPUT,
        'content': _OUTPUT,
        'data': _OUTPUT,
        'response': _OUTPUT,
        'text': _OUTPUT,
        'value': _OUTPUT,
        'all_messages': _MESSAGES,
        'new_messages': _MESSAGES,
        'to_input_list': _MESSAGES,
    },
}
"""What to use instead, by the owner and the name that people know."""


def missing_attribute(owner: str, name: str, known: Iterable[str], options: Iterable[str] = ()) -> AttributeError:
    """The error for an attribute that is not there, with the right one. `options` are those of the constructor."""
    named = [one for one in known if not one.startswith('_')]
    hint = ''
    if name in WRONG_NAMES[owner]:
        hint = f': {WRONG_NAMES[owner][name]}'
    elif name in options:
        hint = f': pass {owner}({name}=…)'
    elif near := similar_names(name, [*named, *options]):
        hint = f'; did you mean {near[0]!r}?' if near[0] in named else f'; did you mean {owner}({near[0]}=…)?'
    return AttributeError(f'{owner} has no attribute {name!r}{hint}', name=name)
