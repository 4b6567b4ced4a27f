"""What an MCP server asks of us during a call: answers of the user, replies of a model, the folders of the user."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from habilis.core.narrowing import is_list, is_mapping
from habilis.tools.mcp.descriptions import clean, clean_line

if TYPE_CHECKING:
    import mcp_types

MAX_TRIES = 3
"""How often a person is asked for the same field."""

MAX_SAMPLES = 10
"""How often a server may ask a model in one run."""

MAX_SAMPLED_TOKENS = 2000
"""Maximum number of tokens of a reply for a server."""

MAX_SAMPLED_TEXT = 20_000
"""Maximum number of characters that a server asks a model."""

AskInCall = Callable[[str], Awaitable[str | None]]
"""Asks the user on behalf of a call. None for no answer."""

Answer = str | int | float | bool | list[str] | None
_YES, _NO = frozenset({'y', 'yes', 'true'}), frozenset({'n', 'no', 'false'})


@dataclass(frozen=True, kw_only=True)
class SamplingRequest:
    """A server asks for a reply of a model."""

    server: str
    system: str
    messages: Sequence[tuple[str, str]]
    """Role and text of each."""

    max_tokens: int


@dataclass(frozen=True)
class SampledReply:
    """A reply, and the model that gave it."""

    text: str
    model: str = 'unknown'


Sample = Callable[[SamplingRequest], Awaitable[SampledReply | None]]
"""Asks a model, if the user agrees. None: the user does not."""


async def elicit(server: str, params: 'mcp_types.ElicitRequestParams', ask: AskInCall) -> 'mcp_types.ElicitResult':
    """Ask the user for each field of a form, or to open a page."""
    from mcp_types import ElicitRequestURLParams, ElicitResult

    said = f'The MCP server {server} asks: {clean(params.message)}'
    if isinstance(params, ElicitRequestURLParams):
        answer = await ask(f'{said}\nOpen {clean_line(params.url, 500)} and come back. Done? [y/N]')
        return ElicitResult(action='accept' if (answer or '').strip().lower() in _YES else 'decline')
    schema = params.requested_schema
    properties = schema.get('properties')
    fields = {str(name): field for name, field in properties.items()} if is_mapping(properties) else {}
    if not fields:
        answer = await ask(f'{said} [y/N]')
        return ElicitResult(action='accept' if (answer or '').strip().lower() in _YES else 'decline', content={})
    required = schema.get('required')
    content: dict[str, Answer] = {}
    for name, field in fields.items():
        answered, value = await _field(said, name, field, ask)
        if answered:
            content[name] = value
        elif is_list(required) and name in required:
            return ElicitResult(action='decline')
    return ElicitResult(action='accept', content=content)


async def _field(said: str, name: str, field: object, ask: AskInCall) -> tuple[bool, Answer]:
    """Whether there is an answer, and which. An empty one is the default, if there is one."""
    schema = {str(key): value for key, value in field.items()} if is_mapping(field) else {}
    choices = _choices(schema)
    parts = [str(schema.get('title') or name), str(schema.get('description') or '')]
    if choices:
        parts.append(f'one of {", ".join(choices)}')
    if 'default' in schema:
        parts.append(f'Enter for {schema["default"]}')
    question = f'{said}\n{clean_line("; ".join(filter(None, parts)), 500)}'
    for _ in range(MAX_TRIES):
        answer = await ask(question)
        if answer is None:
            return False, None
        if not answer.strip():
            default = schema.get('default')
            return 'default' in schema, default if isinstance(default, str | int | float | bool) else None
        try:
            return True, _converted(answer.strip(), schema, choices)
        except ValueError:
            continue
    return False, None


def _choices(schema: dict[str, object]) -> list[str]:
    items = schema.get('items')
    inner = {str(key): value for key, value in items.items()} if is_mapping(items) else schema
    named = inner.get('oneOf') or inner.get('anyOf')
    listed = [one.get('const') for one in named if is_mapping(one)] if is_list(named) else inner.get('enum')
    return [str(one) for one in listed] if is_list(listed) else []


def _converted(answer: str, schema: dict[str, object], choices: list[str]) -> Answer:
    """The answer as the schema has it. Raises `ValueError`."""
    kind = schema.get('type')
    if kind == 'array':
        return [_choice(one.strip(), choices) for one in answer.split(',')]
    if kind == 'boolean':
        if answer.lower() not in _YES | _NO:
            raise ValueError(answer)
        return answer.lower() in _YES
    return int(answer) if kind == 'integer' else float(answer) if kind == 'number' else _choice(answer, choices)


def _choice(answer: str, choices: list[str]) -> str:
    if choices and answer not in choices:
        raise ValueError(answer)
    return answer


def with_consent(model: Sample, ask: AskInCall) -> Sample:
    """The model, once the user has read what it would be asked, and agrees."""

    async def sample(request: SamplingRequest) -> SampledReply | None:
        said = '\n'.join(clean(text) for text in (request.system, *(text for _, text in request.messages)) if text)
        question = f'The MCP server {request.server} asks your model, for at most {request.max_tokens:,} tokens:'
        answer = await ask(f'{question}\n{said}\nMay it? [y/N]')
        return await model(request) if (answer or '').strip().lower() in _YES else None

    return sample


async def sample(
    server: str, params: 'mcp_types.CreateMessageRequestParams', ask_model: Sample
) -> 'mcp_types.CreateMessageResult | mcp_types.ErrorData':
    """Ask the model of the user, who may refuse."""
    from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

    messages = [(message.role, _text(message.content)) for message in params.messages]
    system, tokens = params.system_prompt or '', min(params.max_tokens, MAX_SAMPLED_TOKENS)
    if len(system) + sum(len(text) for _, text in messages) > MAX_SAMPLED_TEXT:
        return ErrorData(code=INVALID_REQUEST, message=f'more than {MAX_SAMPLED_TEXT:,} characters')
    reply = await ask_model(SamplingRequest(server=server, system=system, messages=messages, max_tokens=tokens))
    if reply is None:
        return ErrorData(code=INVALID_REQUEST, message='the user does not agree')
    content = TextContent(type='text', text=reply.text)
    return CreateMessageResult(role='assistant', content=content, model=reply.model, stop_reason='endTurn')


def _text(content: object) -> str:
    blocks = content if is_list(content) else [content]
    return '\n'.join(str(getattr(block, 'text', f'({getattr(block, "type", "")})')) for block in blocks)


def roots_of(folders: Sequence[Path]) -> 'mcp_types.ListRootsResult':
    """The folders that a server may work in."""
    from mcp_types import ListRootsResult, Root
    from pydantic import FileUrl

    return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name) for folder in folders])
