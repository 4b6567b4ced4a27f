"""Our messages as the model layer wants them, and its answers as ours. Imported with the first request."""

import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import (
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
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from habilis.core.codec import Json
from habilis.models.connect import MERGED
from habilis.models.contract import Delta, Finish, Function, FunctionCall, Message, Options, Reply, Role
from habilis.models.heard import HEARD, Heard
from habilis.models.providers import Provider

if TYPE_CHECKING:
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.settings import ModelSettings

    from habilis.models.config import ModelConfig

# A server that counts wrongly is no business of whoever sees the output of the program; we count nothing then.
warnings.filterwarnings('ignore', message='Failed to extract usage with `genai-prices`')
warnings.filterwarnings(
    'ignore', message=r"Pydantic serializer warnings:[^$]*field_name='\w*_tokens", category=UserWarning
)

MAX_MARKS = 4
"""More than these a provider refuses."""

_NO_ID = 'call'
"""For a call without an id: the model layer would make one up, another one each time."""

_SHARED_NAMES = ('top_p', 'top_k', 'seed', 'presence_penalty', 'frequency_penalty')
"""Options that each provider spells its own way, so that the model layer must know them."""

_FINISHES: Mapping[str | None, Finish] = {
    'stop': 'stop',
    'length': 'length',
    'tool_call': 'calls',
    'content_filter': 'filter',
}


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One request, ready to be sent."""

    arguments: 'tuple[list[ModelMessage], ModelSettings, ModelRequestParameters]'
    merged: Mapping[str, Json]
    """Options that the SDK has no place for."""

    answers: list[Heard] = field(default_factory=list[Heard])
    """Those to it that are being read. Empty if none came, and always with Bedrock."""

    @contextmanager
    def sending(self) -> Generator[None]:
        """While this is open, requests that are sent carry the merged options, and answers are noted."""
        merged, heard = MERGED.set(self.merged), HEARD.set(self.answers)
        try:
            yield
        finally:
            MERGED.reset(merged)
            HEARD.reset(heard)

    @property
    def answer(self) -> Heard | None:
        """The one to this request, as far as it has come."""
        return self.answers[-1] if self.answers else None

    async def hang_up(self) -> None:
        """Close the answers."""
        for answer in self.answers:
            await answer.hang_up()


def prepare(
    model: 'VendorModel[Any]', provider: Provider, config: 'ModelConfig', messages: Sequence[Message], options: Options
) -> Prepared:
    """Everything of one request."""
    settings, merged = request_settings(config, options, provider, messages)
    parameters = request_parameters(options.functions)
    converted = request_messages(messages, marks=provider.marks)
    if provider.name == 'mistral':  # it takes ids of calls in a form of its own only, and history may be another's
        converted = model.prepare_messages(converted, parameters)
    return Prepared(arguments=(converted, settings, parameters), merged=merged)


def request_messages(messages: Sequence[Message], *, marks: frozenset[Role]) -> list[ModelMessage]:
    """The conversation, with the marks for the prompt cache where the provider takes them.

    A system message that comes later than the first turn is sent as the user's: hosted models and the templates of
    open ones differ in whether they take it there at all.
    """
    marked = _marked(messages, marks)
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
            parts += _request_parts(message, mark=index in marked)
    if parts:
        converted.append(ModelRequest(parts=parts))
    return converted


def request_parameters(functions: Iterable[Function]) -> ModelRequestParameters:
    """The functions on offer."""
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
    """The settings of one request; and what must be merged into its body because the SDK has no place for it."""
    settings: dict[str, object] = {}
    temperature = config.temperature_for(options)
    max_tokens = config.max_tokens if options.max_tokens is None else options.max_tokens
    if temperature is not None:
        settings['temperature'] = temperature
    if max_tokens is not None:
        settings['max_tokens'] = max_tokens
    if options.stop and provider.name != 'openai-responses':  # that protocol has no stop words: `cut` does it
        settings['stop_sequences'] = list(options.stop)
    if provider.marks and any(message.cache for message in messages if message.role == 'system'):
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


def is_cut(response: ModelResponse, answer: Heard | None) -> bool:
    """Whether a stream stopped before the reply was over.

    Without a reason to finish the model layer makes up a `stop`, as some servers never send one; those send at least
    the mark that ends a stream.
    """
    if response.state == 'incomplete':
        return True
    raw = (response.provider_details or {}).get('finish_reason')
    return not (raw or response.finish_reason not in {None, 'stop'} or (answer is not None and answer.ended))


def reply_from(response: ModelResponse) -> Reply:
    """What the model answered, without its name and usage."""
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
    )


def delta_from(event: ModelResponseStreamEvent) -> Delta | None:
    """What is new in one event of a stream, if anything that is shown."""
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
    """As the model wrote them, where the provider tells; else as JSON."""
    return call.args if isinstance(call.args, str) else call.args_as_json_str()


def _marked(messages: Sequence[Message], roles: frozenset[Role]) -> frozenset[int]:
    """Which messages carry a mark: the newest ones, and one mark is kept for the instructions if they ask for it.

    A provider takes a mark on what it is told, not on what it said: the assistant's goes to the turn before.
    """
    wanted: list[int] = []
    room = MAX_MARKS - any(message.cache for message in messages if message.role == 'system')
    for index, message in enumerate(messages):
        if not message.cache or message.role == 'system':
            continue
        while index >= 0 and not (messages[index].role in roles and messages[index].text):
            index -= 1  # noqa: PLW2901
        if index >= 0 and index not in wanted:
            wanted.append(index)
    return frozenset(wanted[-room:])


def _request_parts(message: Message, *, mark: bool) -> list[ModelRequestPart]:
    text = _sendable(message.text)
    if message.role == 'tool':
        answer = ToolReturnPart(tool_name=message.call_name or '', content=text, tool_call_id=message.call_id or _NO_ID)
        return [answer, UserPromptPart(content=[CachePoint()])] if mark else [answer]
    return [UserPromptPart(content=[text, CachePoint()] if mark else text)]


def _response_parts(message: Message) -> list[ModelResponsePart]:
    calls = [
        ToolCallPart(tool_name=call.name, args=_sendable(call.arguments), tool_call_id=call.id or _NO_ID)
        for call in message.calls
    ]
    return [TextPart(content=_sendable(message.text)), *calls] if message.text else [*calls]


def _sendable(text: str) -> str:
    """Without halves of characters, which file names and broken output can hold: no provider takes them."""
    return text.encode(errors='replace').decode()
