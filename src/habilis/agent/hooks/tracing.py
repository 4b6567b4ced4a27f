"""Runs as spans, by OpenTelemetry's conventions for generative AI. Off unless this hook is added."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from habilis.agent.contract import Result
from habilis.agent.hooks.sanitize import one_line
from habilis.core.events import Event
from habilis.core.logs import redact
from habilis.models.contract import Message, Model, Reply, Usage
from habilis.sandbox.contract import Cell, ToolCall
from habilis.tools.contract import GateCall

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanKind, TracerProvider
    from opentelemetry.util.types import AttributeValue

PROVIDERS = {
    'bedrock': 'aws.bedrock',
    'google': 'gcp.gemini',
    'mistral': 'mistral_ai',
    'openai-responses': 'openai',
}
"""Where the conventions have another name for a provider than we have."""

_FINISH = {'calls': 'tool_calls', 'filter': 'content_filter'}
_NOTED = ('compacted', 'retry', 'hook_failed', 'notice', 'question', 'approval_asked', 'approval_answered')
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_CONTENT = 20_000


@dataclass(kw_only=True)
class _Open:
    """The spans of one run that have not ended."""

    root: 'Span'
    chat: 'Span | None' = None
    waiting: datetime | None = None
    """Since when the first bit of the reply is waited for."""

    cell: 'Span | None' = None
    tools: dict[int, 'Span'] = field(default_factory=dict[int, 'Span'])


class OpenTelemetryHook:
    """Makes spans: `invoke_agent` for a run, inside it `chat` for each request and `execute_tool` for each call.

    Code that runs in the sandbox is a call of the tool `python`; the tools it calls are inside it. A run is a child of
    the span that is current where it is started.
    """

    def __init__(self, tracer_provider: 'TracerProvider | None' = None, *, content: bool = False) -> None:
        """`content` also exports what was said: prompts, replies, code, arguments, results. They may be private."""
        try:
            from opentelemetry import trace
        except ImportError as error:
            msg = "OpenTelemetryHook needs opentelemetry: pip install 'habilis[otel]'"
            raise ImportError(msg) from error
        self._trace = trace
        self._tracer = trace.get_tracer('habilis.agent', tracer_provider=tracer_provider)
        self._content = content
        self._runs: dict[str, _Open] = {}

    def __call__(self, event: Event) -> None:
        """Begin, end or note something."""
        spans = self._runs.get(event.run)
        if spans is None:
            if event.kind in ('run_finished', 'run_failed'):
                return
            # A run that is resumed has no second `run_started`.
            spans = self._runs[event.run] = _Open(root=self._begin_run(event))
        match event.kind:
            case 'model_requested':
                self._begin_chat(event, spans)
            case 'text' | 'thinking':
                self._first_bit(event, spans)
            case 'model_replied':
                self._end_chat(event, spans)
            case 'code':
                self._begin_cell(event, spans)
            case 'cell_finished':
                self._end_cell(event, spans)
            case 'tool_called':
                self._begin_tool(event, spans)
            case 'tool_returned':
                self._end_tool(event, spans)
            case 'run_finished' | 'run_failed':
                self._end_run(event, spans)
            case kind if kind in _NOTED:
                spans.root.add_event(kind, self._said('habilis.text', event.text), _ns(event.at))
            case _:
                pass

    # The run ----------------------------------------------------------------------------------------------------------

    def _begin_run(self, event: Event) -> 'Span':
        attributes = _about('invoke_agent', event)
        attributes['gen_ai.conversation.id'] = event.run
        if isinstance(event.data, Model):
            attributes |= _model(event.data.name)
            attributes['habilis.scripted'] = event.data.traits.scripted
        if event.kind == 'run_started':
            attributes |= self._said('gen_ai.input.messages', _as_json([Message(role='user', text=event.text)]))
        return self._tracer.start_span(
            f'invoke_agent {event.agent}', kind=self._kind.INTERNAL, attributes=attributes, start_time=_ns(event.at)
        )

    def _end_run(self, event: Event, spans: _Open) -> None:
        del self._runs[event.run]
        reason = type(event.data).__name__ if event.kind == 'run_failed' else event.text
        for span in (*spans.tools.values(), spans.cell, spans.chat):
            if span is not None:  # cut off by the end of the run
                self._fail(span, reason, event.text)
                span.end(_ns(event.at))
        if isinstance(event.data, Result):
            result = cast('Result[object]', event.data)
            spans.root.set_attributes(_usage(result.usage))
            spans.root.set_attribute('habilis.ended', result.ended)
            spans.root.set_attributes(self._said('gen_ai.output.messages', _as_json_answer(result)))
            if result.ended not in ('answer', 'question'):
                self._fail(spans.root, result.ended, f'the run ended by {result.ended}')
        else:
            self._fail(spans.root, reason, event.text)
        spans.root.end(_ns(event.at))

    # Requests ---------------------------------------------------------------------------------------------------------

    def _begin_chat(self, event: Event, spans: _Open) -> None:
        if spans.chat is not None:  # the request before got no reply, and is made again
            self._fail(spans.chat, '_OTHER', 'no reply')
            spans.chat.end(_ns(event.at))
        attributes = _about('chat', event) | _model(event.text)
        messages = cast('tuple[Message, ...]', event.data)
        attributes |= self._said('gen_ai.input.messages', _as_json(messages))
        model = attributes['gen_ai.request.model']
        spans.chat = self._inside(spans.root, f'chat {model}', attributes, event, self._kind.CLIENT)
        spans.waiting = event.at

    def _first_bit(self, event: Event, spans: _Open) -> None:
        if spans.chat is not None and spans.waiting is not None:
            seconds = (event.at - spans.waiting).total_seconds()
            spans.chat.set_attribute('gen_ai.response.time_to_first_chunk', seconds)
            spans.waiting = None

    def _end_chat(self, event: Event, spans: _Open) -> None:
        chat, spans.chat = spans.chat, None
        if chat is None or not isinstance(event.data, Reply):
            return
        reply = event.data
        chat.set_attributes(_usage(reply.usage))
        chat.set_attribute('gen_ai.response.finish_reasons', [_FINISH.get(reply.finish, reply.finish)])
        if reply.model:
            chat.set_attribute('gen_ai.response.model', reply.model.partition(':')[2] or reply.model)
        chat.set_attributes(self._said('gen_ai.output.messages', _as_json([reply.message])))
        chat.end(_ns(event.at))

    # Code and tools ---------------------------------------------------------------------------------------------------

    def _begin_cell(self, event: Event, spans: _Open) -> None:
        attributes = _about('execute_tool', event) | _tool('python')
        attributes |= self._said('gen_ai.tool.call.arguments', json.dumps({'code': event.text}))
        spans.cell = self._inside(spans.root, 'execute_tool python', attributes, event, self._kind.INTERNAL)

    def _end_cell(self, event: Event, spans: _Open) -> None:
        span, spans.cell = spans.cell, None
        if span is None or not isinstance(event.data, Cell):
            return
        cell = event.data
        if cell.error is not None:
            self._fail(span, cell.error.type, str(cell.error))
        span.set_attributes(self._said('gen_ai.tool.call.result', f'{cell.stdout}{cell.text or ""}'))
        span.end(_ns(event.at))

    def _begin_tool(self, event: Event, spans: _Open) -> None:
        if not isinstance(event.data, GateCall):
            return
        call = event.data
        attributes = _about('execute_tool', event) | _tool(call.tool)
        attributes['gen_ai.tool.call.id'] = str(call.id)
        attributes |= self._said('gen_ai.tool.call.arguments', json.dumps(dict(call.arguments), default=repr))
        around = spans.cell if spans.cell is not None and call.side == 'code' else spans.root
        spans.tools[call.id] = self._inside(around, f'execute_tool {call.tool}', attributes, event, self._kind.INTERNAL)

    def _end_tool(self, event: Event, spans: _Open) -> None:
        if not isinstance(event.data, ToolCall) or (span := spans.tools.pop(event.data.id, None)) is None:
            return
        record = event.data
        span.set_attribute('habilis.tool.decision', record.decision)
        if not record.ok:
            error = record.error or ''
            self._fail(span, error.partition(':')[0] or '_OTHER', error)
        span.set_attributes(self._said('gen_ai.tool.call.result', record.result))
        span.end(_ns(event.at))

    # Spans ------------------------------------------------------------------------------------------------------------

    @property
    def _kind(self) -> 'type[SpanKind]':
        return self._trace.SpanKind

    def _inside(
        self, around: 'Span', name: str, attributes: 'dict[str, AttributeValue]', event: Event, kind: 'SpanKind'
    ) -> 'Span':
        context = self._trace.set_span_in_context(around)
        return self._tracer.start_span(
            name, context=context, kind=kind, attributes=attributes, start_time=_ns(event.at)
        )

    def _fail(self, span: 'Span', kind: str, text: str) -> None:
        """Messages of errors quote what was said, so without `content` only the kind is told."""
        span.set_attribute('error.type', kind)
        description = redact(one_line(text, 500)) if self._content else kind
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, description))

    def _said(self, name: str, text: str) -> 'dict[str, AttributeValue]':
        return {name: redact(text)[:_MAX_CONTENT]} if self._content else {}


def _about(operation: str, event: Event) -> 'dict[str, AttributeValue]':
    return {'gen_ai.operation.name': operation, 'gen_ai.agent.name': event.agent, 'habilis.step': event.step}


def _model(name: str) -> 'dict[str, AttributeValue]':
    provider, _, model = name.partition(':')
    provider = PROVIDERS.get(provider, provider)
    # `gen_ai.system` is the older name of the same; not every backend knows the newer one.
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
    """A message in the form of the conventions: a role and its parts."""
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
    return _as_json([Message(role='assistant', text='' if result.output is None else str(result.output))])


def _ns(at: datetime) -> int:
    """Nanoseconds since 1970, exactly: a float would lose some."""
    return (at - _START) // timedelta(microseconds=1) * 1000
