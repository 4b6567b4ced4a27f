"""The model of an agent for MCP servers that ask for one."""

from collections.abc import Awaitable, Callable

from habilis.core.errors import ModelError
from habilis.models.contract import Message, Model, Options
from habilis.tools.mcp.server_requests import SampledReply, SamplingRequest


async def sample_for_server(load: Callable[[], Awaitable[Model]], request: SamplingRequest) -> SampledReply | None:
    """The reply to what a server asks; None if there is none. The server never learns why."""
    model = await load()
    messages = [Message(role='system', text=request.system)] if request.system else []
    for role, text in request.messages:
        messages.append(Message(role='assistant' if role == 'assistant' else 'user', text=text))
    try:
        reply = await model.request(messages, Options(max_tokens=request.max_tokens))
    except ModelError:
        return None
    return SampledReply(reply.text, model.name)
