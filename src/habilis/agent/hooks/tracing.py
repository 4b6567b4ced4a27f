"""Exports runs as spans, by OpenTelemetry's conventions for generative AI."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from habilis.agent.context.output import as_text
from habilis.agent.contract import Result
from habilis.agent.events import (
    AgentEvent,
    AnswerRefused,
    ApprovalAnswered,
    ApprovalAsked,
    CellFinished,
    CodeEvent,
    CompactedEvent,
    HookFailed,
    ModelReplied,
    ModelRequested,
    NoticeEvent,
    QuestionEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    TextEvent,
    ThinkingEvent,
    ToolCalled,
    ToolReturned,
)
from habilis.agent.hooks.sanitize import one_line
from habilis.core.dataclass_codec import pack_or_repr
from habilis.core.secrets import redact
from habilis.models.contract import Message, Usage

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanKind, TracerProvider
    from opentelemetry.util.types import AttributeValue

PROVIDERS = {
    'bedrock': 'aws.bedrock',
    'google': 'gcp.gemini',
    'mistral': 'mistral_ai',
    'openai-responses': 'openai',
}
"""Names of providers in the conventions, where they differ from ours."""

_FINISH = {'calls': 'tool_calls', 'filter': 'content_filter', 'early': 'stop'}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_CONTENT = 20_000


@dataclass(kw_only=True)
class _OpenSpans:
    """Spans of one run that have not ended."""

    root: 'Span'
    chat: 'Span | None' = None
    requested_at: datetime | None = None
    """Time of the request until the first part of its reply arrives."""

    cell: 'Span | None' = None
    tools: dict[int, 'Span'] = field(default_factory=dict[int, 'Span'])


class OpenTelemetryHook:
    """Exports a span `invoke_agent` per run, with `chat` per model request and `execute_tool` per tool call inside.

    Code in the sandbox is a call of the tool `python`; its tool calls are children of that span. The parent of a run is
    the span that is current where the run is started.
    """

    def __init__(self, tracer_provider: 'TracerProvider | None' = None, *, content: bool = False) -> None:
        """`content` also exports prompts, replies, code, arguments and results, which may be private."""
        try:
            from opentelemetry import trace
        except ImportError as error:
            msg = "OpenTelemetryHook needs opentelemetry: pip install 'habilis[otel]'"
            raise ImportError(msg) from error
        self._trace = trace
        self._tracer = trace.get_tracer('habilis.agent', tracer_provider=tracer_provider)
        self._content = content
        self._runs: dict[str, _OpenSpans] = {}

    def __call__(self, event: AgentEvent) -> None:
        """Start, end or annotate a span."""
        spans = self._runs.get(event.run)
        if spans is None:
            if isinstance(event, RunFinished | RunFailed):
                return
            # The first event need not be `RunStarted`: the run may have been resumed.
            spans = self._runs[event.run] = _OpenSpans(root=self._start_run(event))
        match event:
            case ModelRequested():
                self._start_chat(event, spans)
            case TextEvent() | ThinkingEvent():
                self._record_first_chunk(event, spans)
            case ModelReplied():
                self._end_chat(event, spans)
            case CodeEvent():
                self._start_cell(event, spans)
            case CellFinished():
                self._end_cell(event, spans)
            case ToolCalled():
                self._start_tool(event, spans)
            case ToolReturned():
                self._end_tool(event, spans)
            case RunFinished() | RunFailed():
                self._end_run(event, spans)
            case (
                AnswerRefused()
                | CompactedEvent()
                | RetryEvent()
                | HookFailed()
                | NoticeEvent()
                | QuestionEvent()
                | ApprovalAsked()
                | ApprovalAnswered()
            ):
                spans.root.add_event(event.kind, self._content_of('habilis.text', event.text), _ns(event.at))
            case _:
                pass

    # Run --------------------------------------------------------------------------------------------------------------

    def _start_run(self, event: AgentEvent) -> 'Span':
        attributes = _common('invoke_agent', event)
        attributes['gen_ai.conversation.id'] = event.run
        if isinstance(event, RunStarted | RunResumed):
            attributes |= _model(event.model.name)
            attributes['habilis.scripted'] = event.model.traits.scripted
        if isinstance(event, RunStarted):
            task = [Message(role='user', text=event.task)]
            attributes |= self._content_of('gen_ai.input.messages', _as_json(task))
        return self._tracer.start_span(
            f'invoke_agent {event.agent}', kind=self._kind.INTERNAL, attributes=attributes, start_time=_ns(event.at)
        )

    def _end_run(self, event: RunFinished | RunFailed, spans: _OpenSpans) -> None:
        del self._runs[event.run]
        reason = type(event.error).__name__ if isinstance(event, RunFailed) else event.result.ended
        for span in (*spans.tools.values(), spans.cell, spans.chat):
            if span is not None:  # interrupted by the end of the run
                self._fail(span, reason, event.text)
                span.end(_ns(event.at))
        if isinstance(event, RunFailed):
            self._fail(spans.root, reason, event.text)
        else:
            self._add_result(event.result, spans.root)
        spans.root.end(_ns(event.at))

    def _add_result(self, result: Result[object], root: 'Span') -> None:
        root.set_attributes(_usage(result.usage))
        root.set_attribute('habilis.ended', result.ended)
        root.set_attributes(self._content_of('gen_ai.output.messages', _as_json_answer(result)))
        if result.ended not in ('answer', 'question'):
            self._fail(root, result.ended, f'the run ended by {result.ended}')

    # Requests ---------------------------------------------------------------------------------------------------------

    def _start_chat(self, event: ModelRequested, spans: _OpenSpans) -> None:
        if spans.chat is not None:  # the request before got no reply and is retried
            self._fail(spans.chat, '_OTHER', 'no reply')
            spans.chat.end(_ns(event.at))
        attributes = _common('chat', event) | _model(event.model.name)
        attributes |= self._content_of('gen_ai.input.messages', _as_json(event.messages))
        model = attributes['gen_ai.request.model']
        spans.chat = self._start_child(spans.root, f'chat {model}', attributes, event, self._kind.CLIENT)
        spans.requested_at = event.at

    def _record_first_chunk(self, event: TextEvent | ThinkingEvent, spans: _OpenSpans) -> None:
        if spans.chat is not None and spans.requested_at is not None:
            seconds = (event.at - spans.requested_at).total_seconds()
            spans.chat.set_attribute('gen_ai.response.time_to_first_chunk', seconds)
            spans.requested_at = None

    def _end_chat(self, event: ModelReplied, spans: _OpenSpans) -> None:
        chat, spans.chat = spans.chat, None
        if chat is None:
            return
        reply = event.reply
        chat.set_attributes(_usage(reply.usage))
        chat.set_attribute('gen_ai.response.finish_reasons', [_FINISH.get(reply.finish, reply.finish)])
        if reply.model:
            chat.set_attribute('gen_ai.response.model', reply.model.partition(':')[2] or reply.model)
        chat.set_attributes(self._content_of('gen_ai.output.messages', _as_json([reply.message])))
        chat.end(_ns(event.at))

    # Code and tools ---------------------------------------------------------------------------------------------------

    def _start_cell(self, event: CodeEvent, spans: _OpenSpans) -> None:
        attributes = _common('execute_tool', event) | _tool('python')
        attributes |= self._content_of('gen_ai.tool.call.arguments', json.dumps({'code': event.code}))
        spans.cell = self._start_child(spans.root, 'execute_tool python', attributes, event, self._kind.INTERNAL)

    def _end_cell(self, event: CellFinished, spans: _OpenSpans) -> None:
        span, spans.cell = spans.cell, None
        if span is None:
            return
        cell = event.cell
        if cell.error is not None:
            self._fail(span, cell.error.type, str(cell.error))
        span.set_attributes(self._content_of('gen_ai.tool.call.result', f'{cell.stdout}{cell.text or ""}'))
        span.end(_ns(event.at))

    def _start_tool(self, event: ToolCalled, spans: _OpenSpans) -> None:
        call = event.call
        attributes = _common('execute_tool', event) | _tool(call.tool)
        attributes['gen_ai.tool.call.id'] = str(call.id)
        attributes |= self._content_of('gen_ai.tool.call.arguments', json.dumps(pack_or_repr(call.arguments)))
        parent = spans.cell if spans.cell is not None and call.side == 'code' else spans.root
        name = f'execute_tool {call.tool}'
        spans.tools[call.id] = self._start_child(parent, name, attributes, event, self._kind.INTERNAL)

    def _end_tool(self, event: ToolReturned, spans: _OpenSpans) -> None:
        call = event.call
        span = spans.tools.pop(call.id, None)
        if span is None:
            return
        span.set_attribute('habilis.tool.decision', call.decision)
        if not call.ok:
            error = call.error or ''
            self._fail(span, error.partition(':')[0] or '_OTHER', error)
        span.set_attributes(self._content_of('gen_ai.tool.call.result', call.result))
        span.end(_ns(event.at))

    # Spans ------------------------------------------------------------------------------------------------------------

    @property
    def _kind(self) -> 'type[SpanKind]':
        return self._trace.SpanKind

    def _start_child(
        self, parent: 'Span', name: str, attributes: 'dict[str, AttributeValue]', event: AgentEvent, kind: 'SpanKind'
    ) -> 'Span':
        context = self._trace.set_span_in_context(parent)
        return self._tracer.start_span(
            name, context=context, kind=kind, attributes=attributes, start_time=_ns(event.at)
        )

    def _fail(self, span: 'Span', kind: str, text: str) -> None:
        """Mark a span as failed. Error messages quote content, so without `content` only the type is exported."""
        span.set_attribute('error.type', kind)
        description = redact(one_line(text, 500)) if self._content else kind
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, description))

    def _content_of(self, name: str, text: str) -> 'dict[str, AttributeValue]':
        return {name: redact(text)[:_MAX_CONTENT]} if self._content else {}


def _common(operation: str, event: AgentEvent) -> 'dict[str, AttributeValue]':
    return {'gen_ai.operation.name': operation, 'gen_ai.agent.name': event.agent, 'habilis.step': event.step}


def _model(name: str) -> 'dict[str, AttributeValue]':
    provider, _, model = name.partition(':')
    provider = PROVIDERS.get(provider, provider)
    # `gen_ai.system` is the former name of this attribute; some backends know only that one.
    return {'gen_ai.provider.name': provider, 'gen_ai.system': provider, 'gen_ai.request.model': model or name}


def _tool(name: str) -> 'dict[str, AttributeValue]':
    return {'gen_ai.tool.name': name, 'gen_ai.tool.type': 'function'}


def _usage(usage: Usage) -> 'dict[str, AttributeValue]':
    attributes: dict[str, AttributeValue] = {
        'gen_ai.usage.input_tokens': usage.input_tokens,
        'gen_ai.usage.output_tokens': usage.output_tokens,
        'gen_ai.usage.cache_read.input_tokens': usage.cached_tokens,
    }
    if usage.cost is not None:
        attributes['habilis.cost'] = usage.cost
    return attributes


def _as_json(messages: 'tuple[Message, ...] | list[Message]') -> str:
    return json.dumps([_parts(message) for message in messages], ensure_ascii=False)


def _parts(message: Message) -> dict[str, object]:
    """A message as the conventions define it: a role and its parts."""
    parts: list[dict[str, object]] = []
    if message.role == 'tool':
        parts.append({'type': 'tool_call_response', 'id': message.call_id, 'response': message.text})
    elif message.text:
        parts.append({'type': 'text', 'content': message.text})
    parts.extend(
        {'type': 'tool_call', 'id': call.id, 'name': call.name, 'arguments': call.arguments} for call in message.calls
    )
    return {'role': message.role, 'parts': parts}


def _as_json_answer(result: 'Result[object]') -> str:
    return _as_json([Message(role='assistant', text='' if result.output is None else as_text(result.output))])


def _ns(at: datetime) -> int:
    """Nanoseconds since 1970. Integers only: a float would lose precision."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
