"""Instructions of an agent: text, functions of the context of a run, or several of both."""

from collections.abc import Callable, Sequence
from typing import Any

from habilis.core.errors import AgentError
from habilis.core.integers import error_text
from habilis.core.narrowing import is_list, is_tuple
from habilis.tools import Context
from habilis.tools.attempts import call
from habilis.tools.context import with_context
from habilis.tools.validation import describe_value

Instruction = str | Callable[..., Any]
"""Text, or a function that returns text: of nothing or of the `Context`, with `def` or `async def`."""

Instructions = Instruction | Sequence[Instruction]


def is_instructions(value: object) -> bool:
    """Whether this can be the instructions of an agent."""
    items = value if is_list(value) or is_tuple(value) else [value]
    return all(isinstance(item, str) or callable(item) for item in items)


def is_static(instructions: Instructions) -> bool:
    """Whether they are the same for every run."""
    return all(isinstance(part, str) for part in parts_of(instructions))


async def evaluate(instructions: Instructions, context: Context[Any]) -> str:
    """The text for one run. Functions run as tools do: with `def` on a thread. Raises `AgentError`."""
    texts = [part if isinstance(part, str) else await _text_of(part, context) for part in parts_of(instructions)]
    return '\n\n'.join(text.strip() for text in texts if text.strip())


def parts_of(instructions: Instructions) -> Sequence[Instruction]:
    """The instructions as a list."""
    return [instructions] if isinstance(instructions, str) or callable(instructions) else instructions


async def _text_of(function: Callable[..., Any], context: Context[Any]) -> str:
    name = getattr(function, '__name__', type(function).__name__)
    try:
        text = await call(with_context(function, context))
    except Exception as error:
        msg = f'the function {name} of the instructions failed: {error_text(error)}'
        raise AgentError(msg) from error
    if not isinstance(text, str):
        msg = f'the function {name} of the instructions must return text, not {describe_value(text)}'
        raise AgentError(msg)
    return text
