"""Conversion between our messages and those of pydantic-ai. Imported with the first request."""

import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from habilis.core.codec import Json
from habilis.core.narrowing import fields_in, items_in
from habilis.models.connection import MERGED
from habilis.models.contract import (
    Delta,
    Finish,
    Function,
    FunctionCall,
    Message,
    Options,
    Reply,
    ReplyToken,
    Role,
)
from habilis.models.http_response import OBSERVED, ObservedResponse
from habilis.models.providers import Provider

if TYPE_CHECKING:
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.settings import ModelSettings

    from habilis.models.config import ModelConfig

# A server with invalid token counts must not print warnings into the output of the user's program.
warnings.filterwarnings('ignore', message='Failed to extract usage with `genai-prices`')
warnings.filterwarnings(
    'ignore', message=r"Pydantic serializer warnings:[^$]*field_name='\w*_tokens", category=UserWarning
)

MAX_CACHE_POINTS = 4
"""Maximum number of cache points that a provider accepts."""

_NO_ID = 'call'
"""Id of a call that has none: pydantic-ai would generate a new one each time, which defeats the prompt cache."""

_SHARED_NAMES = ('top_p', 'top_k', 'seed', 'presence_penalty', 'frequency_penalty')
"""Options that providers name differently, so pydantic-ai must translate them."""

_FINISHES: Mapping[str | None, Finish] = {
    'stop': 'stop',
    'length': 'length',
    'tool_call': 'calls',
    'content_filter': 'filter',
}


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A request that is ready to send."""

    arguments: 'tuple[list[ModelMessage], ModelSettings, ModelRequestParameters]'
    merged: Mapping[str, Json]
    """Fields of the body that the SDK cannot pass."""

    responses: list[ObservedResponse] = field(default_factory=list[ObservedResponse])
    """HTTP responses to this request. Empty if none arrived, and always with Bedrock."""

    @contextmanager
    def sending(self) -> Generator[None]:
        """While open, requests carry the merged fields, and their responses are collected."""
        merged, observed = MERGED.set(self.merged), OBSERVED.set(self.responses)
        try:
            yield
        finally:
            MERGED.reset(merged)
            OBSERVED.reset(observed)

    @property
    def response(self) -> ObservedResponse | None:
        """The last HTTP response, as far as it has been read."""
        return self.responses[-1] if self.responses else None

    async def close_responses(self) -> None:
        """Close all HTTP responses."""
        for response in self.responses:
            await response.close()


def prepare(
    model: 'VendorModel[Any]', provider: Provider, config: 'ModelConfig', messages: Sequence[Message], options: Options
) -> PreparedRequest:
    """Convert one request to the arguments of pydantic-ai's model."""
    settings, merged = request_settings(config, options, provider, messages)
    parameters = request_parameters(options.functions)
    converted = request_messages(messages, cache_roles=provider.cache_roles)
    if (
        provider.name == 'mistral'
    ):  # its call ids have a format of their own, and the history may come from another provider
        converted = model.prepare_messages(converted, parameters)
    return PreparedRequest(arguments=(converted, settings, parameters), merged=merged)


def request_messages(messages: Sequence[Message], *, cache_roles: frozenset[Role]) -> list[ModelMessage]:
    """Convert the conversation, with cache points where the provider accepts them.

    A system message after the first turn is sent as a user message, because not every provider and chat template
    accepts it there.
    """
    cache_points = _cache_points(messages, cache_roles)
    converted: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    for index, message in enumerate(messages):
        if message.role == 'assistant':
            if parts:
                converted.append(ModelRequest(parts=parts))
                parts = []
            converted.append(ModelResponse(parts=_response_parts(message)))
        elif message.role == 'system' and not converted and all(isinstance(part, SystemPromptPart) for part in parts):
            parts.append(SystemPromptPart(content=_sendable(message.text)))
        else:
            parts += _request_parts(message, cache_point=index in cache_points)
    if parts:
        converted.append(ModelRequest(parts=parts))
    return converted


def request_parameters(functions: Iterable[Function]) -> ModelRequestParameters:
    """Convert the functions offered to the model."""
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=function.name,
                description=function.description,
                parameters_json_schema=dict(function.parameters),
            )
            for function in functions
        ]
    )


def request_settings(
    config: 'ModelConfig', options: Options, provider: Provider, messages: Sequence[Message]
) -> tuple['ModelSettings', dict[str, Json]]:
    """The settings of one request, and the fields to merge into its body because the SDK cannot pass them."""
    settings: dict[str, object] = {}
    temperature = config.temperature_for(options)
    max_tokens = config.max_tokens if options.max_tokens is None else options.max_tokens
    if temperature is not None:
        settings['temperature'] = temperature
    if max_tokens is not None:
        settings['max_tokens'] = max_tokens
    if (
        options.stop and provider.name != 'openai-responses'
    ):  # that protocol has no stop sequences; the engine applies them
        settings['stop_sequences'] = list(options.stop)
    if provider.cache_roles and any(message.cache for message in messages if message.role == 'system'):
        settings[f'{provider.name}_cache_instructions'] = True
    extra: dict[str, Json] = {**config.extra, **options.extra}
    if provider.extras == 'body':
        if extra:
            settings['extra_body'] = extra
        extra = {}
    else:
        settings |= {name: extra.pop(name) for name in _SHARED_NAMES if name in extra}
    if provider.extras == 'fields' and extra:
        settings['bedrock_additional_model_requests_fields'] = extra
        extra = {}
    return cast('ModelSettings', settings), extra


def is_interrupted(response: ModelResponse, http_response: ObservedResponse | None) -> bool:
    """Whether a stream ended before the reply was complete.

    Without a finish reason pydantic-ai assumes `stop`, because some servers never send one; those send at least the
    end-of-stream marker.
    """
    if response.state == 'incomplete':
        return True
    raw = (response.provider_details or {}).get('finish_reason')
    return not (
        raw or response.finish_reason not in {None, 'stop'} or (http_response is not None and http_response.ended)
    )


def reply_from(response: ModelResponse) -> Reply:
    """Convert a response to a reply, without model name and usage."""
    calls = tuple(
        FunctionCall(id=part.tool_call_id, name=part.tool_name, arguments=_arguments(part))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    finish = _FINISHES.get(response.finish_reason, 'other')
    return Reply(
        text=''.join(part.content for part in response.parts if isinstance(part, TextPart)),
        calls=calls,
        thinking=''.join(part.content for part in response.parts if isinstance(part, ThinkingPart)),
        finish='calls' if calls and finish in {'stop', 'other'} else finish,
        tokens=_tokens((response.provider_details or {}).get('logprobs')),
    )


def _tokens(logprobs: object) -> tuple[ReplyToken, ...]:
    """The tokens of a reply as OpenAI's protocol has them: without ids, which some servers add."""
    found: list[ReplyToken] = []
    for one in map(fields_in, items_in(logprobs)):
        text, logprob, identity = one.get('token'), one.get('logprob'), one.get('token_id')
        if isinstance(text, str) and isinstance(logprob, (int, float)):
            found.append(ReplyToken(text=text, logprob=logprob, id=identity if isinstance(identity, int) else None))
    return tuple(found)


def delta_from(event: ModelResponseStreamEvent) -> Delta | None:
    """Convert one event of a stream; None if it carries no text."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return Delta(text=text) if text else None
        case (
            PartStartEvent(part=ThinkingPart(content=thinking))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thinking))
        ):
            return Delta(thinking=thinking) if thinking else None
        case PartStartEvent(part=ToolCallPart() as call):
            return Delta(arguments=_arguments(call)) if call.args else None
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(arguments))):
            return Delta(arguments=arguments) if arguments else None
        case _:
            return None


def _arguments(call: ToolCallPart) -> str:
    """The arguments as the model wrote them, or serialized if the provider has parsed them."""
    return call.args if isinstance(call.args, str) else call.args_as_json_str()


def _cache_points(messages: Sequence[Message], roles: frozenset[Role]) -> frozenset[int]:
    """Indexes of the messages that get a cache point: the newest ones; one point is reserved for the instructions.

    A cache point on an assistant message moves to the message before it, as providers accept none there.
    """
    wanted: list[int] = []
    available = MAX_CACHE_POINTS - any(message.cache for message in messages if message.role == 'system')
    for index, message in enumerate(messages):
        if not message.cache or message.role == 'system':
            continue
        while index >= 0 and not (messages[index].role in roles and messages[index].text):
            index -= 1  # noqa: PLW2901
        if index >= 0 and index not in wanted:
            wanted.append(index)
    return frozenset(wanted[-available:])


def _request_parts(message: Message, *, cache_point: bool) -> list[ModelRequestPart]:
    text = _sendable(message.text)
    if message.role == 'tool':
        answer = ToolReturnPart(tool_name=message.call_name or '', content=text, tool_call_id=message.call_id or _NO_ID)
        return [answer, UserPromptPart(content=[CachePoint()])] if cache_point else [answer]
    content: list[UserContent] = [
        text,
        *(BinaryContent(image.data, media_type=image.media_type) for image in message.images),
    ]
    if cache_point:
        content.append(CachePoint())
    return [UserPromptPart(content=content if len(content) > 1 else text)]


def _response_parts(message: Message) -> list[ModelResponsePart]:
    calls = [
        ToolCallPart(tool_name=call.name, args=_sendable(call.arguments), tool_call_id=call.id or _NO_ID)
        for call in message.calls
    ]
    return [TextPart(content=_sendable(message.text)), *calls] if message.text else [*calls]


def _sendable(text: str) -> str:
    """The text without lone surrogates, which file names and broken output can contain and no provider accepts."""
    return text.encode(errors='replace').decode()
