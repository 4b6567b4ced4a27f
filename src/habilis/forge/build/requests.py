"""Asks the model for one thing at a time: a code block, a name, a sentence."""

import ast
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from habilis.agent.loop.reply_reading import read_reply
from habilis.core.errors import ForgeError
from habilis.core.syntax import parse_expression, parse_module
from habilis.flows import step
from habilis.models.contract import Message, Model, Options

_FENCE = re.compile(r'^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```', re.DOTALL | re.MULTILINE)
_OPEN_FENCE = re.compile(r'^[ \t]*```[^\n`]*\n(.*)\Z', re.DOTALL | re.MULTILINE)


@cache
def prompt(name: str) -> str:
    """A prompt of this room."""
    return files('habilis.forge').joinpath('prompts', f'{name}.md').read_text(encoding='utf-8')


def has_code_block(reply: str) -> bool:
    """Whether the reply has a closed code block that is not empty."""
    return reply.count('```') >= 2 and any(block.strip() for block in _FENCE.findall(reply))


class StageConversation:
    """One conversation with the model. Every stage has its own, so that no misreading is shared.

    Inside a flow each reply is recorded under the label, and not asked for again. A model on this machine is stopped
    as soon as the reply `is_complete`, since each further token costs time.
    """

    def __init__(
        self,
        model: Model,
        label: str,
        *,
        temperature: float | None = None,
        messages: Sequence[Message] = (),
        is_complete: Callable[[str], bool] = has_code_block,
    ) -> None:
        self._model = model
        self._is_complete = is_complete if model.traits.local else None
        self._ask = step(name=f'ask {label}')(self._request)
        self._options = Options(temperature=temperature)
        self._messages = list(messages)

    async def say(self, text: str) -> str:
        """Send a message and return the text of the reply."""
        self._messages.append(Message(role='user', text=text))
        reply = await self._ask(self._messages)
        self._messages.append(Message(role='assistant', text=reply))
        return reply

    async def _request(self, messages: list[Message]) -> str:
        return (await read_reply(self._model, messages, self._options, is_complete=self._is_complete)).text


def code_block(reply: str) -> str:
    """The last code block of a reply; the whole reply, if that is Python; else an empty string.

    Of a block that is not closed, the lines before the last one that are Python.
    """
    blocks = _FENCE.findall(reply)
    if blocks:
        return blocks[-1].strip('\n')
    if unclosed := _OPEN_FENCE.search(reply):
        return _complete_lines(unclosed[1])
    return reply.strip() if _is_python(reply.strip()) else ''


def _complete_lines(code: str) -> str:
    lines = code.splitlines()[:-1]
    while not _is_python('\n'.join(lines)):
        lines.pop()
    return '\n'.join(lines).strip('\n')


def _is_python(code: str) -> bool:
    try:
        parse_module(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def functions_in(code: str) -> dict[str, str]:
    """Source of the functions of a module, by name; empty if it is not Python."""
    try:
        tree = parse_module(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {node.name: ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef)}


def without_body(function: str) -> str:
    """The definition of a function with its docstring only."""
    tree = parse_module(function)
    [node] = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    node.decorator_list = []
    node.body = node.body[:1] if ast.get_docstring(node) else [ast.Pass()]
    return ast.unparse(node)


def literal_call(code: str, name: str) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of a call with literals. Raises `ForgeError` if the code is not one."""
    try:
        node = parse_expression(code.strip()).body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            args = tuple(ast.literal_eval(argument) for argument in node.args)
            return args, {one.arg: ast.literal_eval(one.value) for one in node.keywords if one.arg is not None}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    msg = f'the model wrote no call of {name} with literal arguments: {code.strip()[:200]!r}'
    raise ForgeError(msg)
