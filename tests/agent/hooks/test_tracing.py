"""Runs become spans by the GenAI conventions: nested, complete, and silent about what was said."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from habilis.agent.contract import RunLimits
from habilis.agent.events import CellFinished, CodeEvent, Event, RunFinished, RunStarted
from habilis.agent.hooks import OpenTelemetryHook
from habilis.core.errors import ContextOverflow, ModelError
from habilis.models.contract import FunctionCall, Message, Reply, Usage
from habilis.models.scripted import ScriptedModel
from tests.agent.hooks.samples import sample
from tests.agent.hooks.watching import ANSWER, Seen, agent, code, watch

SECRET = 'the launch code is 0000'


class Traces:
    """Spans that were made."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """Those that have ended, in the order in which they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def names(self) -> list[str]:
        """Of the same."""
        return [span.name for span in self.spans]

    def one(self, name: str) -> ReadableSpan:
        """The only span of this name."""
        [span] = [span for span in self.spans if span.name == name]
        return span

    def parents(self) -> list[tuple[str, str | None]]:
        """The name of each span and of the one around it."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return [(span.name, names[span.parent.span_id] if span.parent else None) for span in self.spans]


def attributes(span: ReadableSpan) -> dict[str, object]:
    """What is known about it."""
    return dict(span.attributes or {})


@pytest.fixture
def traces() -> Traces:
    """Nothing yet."""
    return Traces()


def double(number: int) -> int:
    """Twice as much."""
    if number > 100:
        msg = f'too much: {SECRET}'
        raise ValueError(msg)
    return 2 * number


# Spans ----------------------------------------------------------------------------------------------------------------


async def test_a_run_holds_its_requests_and_its_code_and_code_holds_its_tool_calls(traces: Traces) -> None:
    replies = [code('half = double(4)'), code('final_answer(half)')]
    await watch(replies, OpenTelemetryHook(traces.provider), tools=[double], name='bob')
    assert traces.parents() == [
        ('invoke_agent bob', None),
        ('chat script', 'invoke_agent bob'),
        ('execute_tool python', 'invoke_agent bob'),
        ('execute_tool double', 'execute_tool python'),
        ('chat script', 'invoke_agent bob'),
        ('execute_tool python', 'invoke_agent bob'),
    ]
    assert {span.status.status_code for span in traces.spans} == {StatusCode.UNSET}


async def test_a_request_is_described_by_the_conventions(traces: Traces) -> None:
    usage = Usage(requests=1, input_tokens=120, output_tokens=30, cached_tokens=50, seconds=1, cost=0.5)
    model = ScriptedModel([Reply(text=ANSWER, usage=usage, finish='length')], name='mistral:large:v2')
    await watch(model, OpenTelemetryHook(traces.provider))
    span = traces.one('chat large:v2')
    found = attributes(span)
    assert span.kind == SpanKind.CLIENT
    assert found.pop('gen_ai.response.time_to_first_chunk') is not None
    assert found == {
        'gen_ai.operation.name': 'chat',
        'gen_ai.agent.name': 'agent',
        'gen_ai.provider.name': 'mistral_ai',
        'gen_ai.system': 'mistral_ai',
        'gen_ai.request.model': 'large:v2',
        'gen_ai.response.model': 'large:v2',
        'gen_ai.response.finish_reasons': ('length',),
        'gen_ai.usage.input_tokens': 120,
        'gen_ai.usage.output_tokens': 30,
        'gen_ai.usage.cache_read.input_tokens': 50,
        'habilis.cost': 0.5,
        'habilis.step': 1,
    }


async def test_a_run_and_its_tools_are_described_by_the_conventions(traces: Traces) -> None:
    result = await watch([code('final_answer(double(4))')], OpenTelemetryHook(traces.provider), tools=[double])
    root = attributes(traces.one('invoke_agent agent'))
    assert root['gen_ai.operation.name'] == 'invoke_agent'
    assert root['gen_ai.agent.name'] == 'agent'
    assert root['gen_ai.conversation.id'] == result.run_id
    assert root['gen_ai.usage.input_tokens'] == result.usage.input_tokens
    assert root['habilis.ended'] == 'answer'
    assert root['habilis.scripted'] is True
    called = attributes(traces.one('execute_tool double'))
    assert called['gen_ai.operation.name'] == 'execute_tool'
    assert called['gen_ai.tool.name'] == 'double'
    assert called['gen_ai.tool.type'] == 'function'
    assert called['habilis.tool.decision'] == 'allowed'
    assert attributes(traces.one('execute_tool python'))['gen_ai.tool.name'] == 'python'


async def test_a_tool_that_the_model_calls_itself_is_beside_the_code(traces: Traces) -> None:
    from habilis.tools import tool

    @tool(side='model')
    def ask(topic: str) -> str:
        """Ask somebody."""
        return topic

    call = FunctionCall(id='1', name='ask', arguments='{"topic": "x"}')
    model = ScriptedModel([Reply(calls=(call,), finish='calls'), Reply(text='Done.')], functions=True)
    await watch(model, OpenTelemetryHook(traces.provider), tools=[ask])
    assert ('execute_tool ask', 'invoke_agent agent') in traces.parents()
    assert attributes(traces.spans[1])['gen_ai.response.finish_reasons'] == ('tool_calls',)


async def test_spans_last_as_long_as_what_they_are_about(traces: Traces) -> None:
    seen = Seen()

    async def slow(_event: Event) -> None:
        await asyncio.sleep(0.002)  # hooks may be late; the times are those of the events

    await watch([ANSWER], slow, OpenTelemetryHook(traces.provider), seen)

    def ns(kind: type[Event]) -> int:
        [event] = seen.of(kind)
        return round((event.at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6) * 1000

    cell = traces.one('execute_tool python')
    assert (cell.start_time, cell.end_time) == (ns(CodeEvent), ns(CellFinished))
    root = traces.one('invoke_agent agent')
    assert (root.start_time, root.end_time) == (ns(RunStarted), ns(RunFinished))


async def test_a_run_is_inside_the_span_in_which_it_was_started(traces: Traces) -> None:
    with traces.provider.get_tracer('program').start_as_current_span('request'):
        await watch([ANSWER], OpenTelemetryHook(traces.provider))
    assert ('invoke_agent agent', 'request') in traces.parents()


async def test_runs_at_the_same_time_are_not_mixed(traces: Traces) -> None:
    def reply(messages: Sequence[Message]) -> str:
        return code(f'print(double({len(messages)}))') if len(messages) == 2 else ANSWER

    model = ScriptedModel(reply, latency=0.005)
    async with agent(model, tools=[double], hooks=[OpenTelemetryHook(traces.provider)]) as working:
        results = await asyncio.gather(*(working.run(f'task {number}') for number in range(6)))
    roots = {span.context.trace_id: span for span in traces.spans if span.name == 'invoke_agent agent' and span.context}
    assert {attributes(root)['gen_ai.conversation.id'] for root in roots.values()} == {run.run_id for run in results}
    for trace in roots:
        names = [span.name for span in traces.spans if span.context and span.context.trace_id == trace]
        assert names == [
            'invoke_agent agent', 'chat script', 'execute_tool python', 'execute_tool double',
            'chat script', 'execute_tool python',
        ]  # fmt: skip


async def test_a_run_that_is_resumed_is_a_span_again(traces: Traces) -> None:
    hook = OpenTelemetryHook(traces.provider)
    async with agent([code('print(1)'), ANSWER], hooks=[hook]) as working:
        first = await working.run('x', max_steps=1)
        await working.resume(first.run_id)
    ended = [attributes(span)['habilis.ended'] for span in traces.spans if span.name == 'invoke_agent agent']
    assert ended == ['max_steps', 'answer']


async def test_what_happened_on_the_way_is_noted(traces: Traces) -> None:
    def broken(event: Event) -> None:
        if event.kind == 'code':
            raise ValueError(SECRET)

    await watch([ANSWER], broken, OpenTelemetryHook(traces.provider))
    [noted] = traces.one('invoke_agent agent').events
    assert noted.name == 'hook_failed'
    assert not noted.attributes


# Errors ---------------------------------------------------------------------------------------------------------------


def failure(span: ReadableSpan) -> tuple[StatusCode, object]:
    """Its status and the kind of its error."""
    return span.status.status_code, attributes(span).get('error.type')


async def test_code_and_tools_that_fail_set_the_status_of_their_own_spans(traces: Traces) -> None:
    await watch([code('double(1000)'), ANSWER], OpenTelemetryHook(traces.provider), tools=[double])
    assert failure(traces.one('execute_tool double')) == (StatusCode.ERROR, 'ValueError')
    first, second = [span for span in traces.spans if span.name == 'execute_tool python']
    assert failure(first) == (StatusCode.ERROR, 'ValueError')
    assert failure(second) == failure(traces.one('invoke_agent agent')) == (StatusCode.UNSET, None)


async def test_a_model_that_fails_ends_all_open_spans_with_an_error(traces: Traces) -> None:
    with pytest.raises(ModelError):
        await watch([ModelError(SECRET)], OpenTelemetryHook(traces.provider))
    assert traces.names == ['invoke_agent agent', 'chat script']
    assert [failure(span) for span in traces.spans] == [(StatusCode.ERROR, 'ModelError')] * 2


async def test_a_cancelled_run_leaves_no_span_open(traces: Traces) -> None:
    asked = asyncio.Event()

    def notice(event: Event) -> None:
        if event.kind == 'model_requested':
            asked.set()

    async with agent(ScriptedModel([ANSWER], latency=60), hooks=[OpenTelemetryHook(traces.provider), notice]) as busy:
        work = asyncio.ensure_future(busy.run('x'))
        await asked.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert [failure(span) for span in traces.spans] == [(StatusCode.ERROR, 'CancelledError')] * 2


async def test_a_limit_is_an_error_by_its_name(traces: Traces) -> None:
    await watch([code('print(1)')], OpenTelemetryHook(traces.provider), limits=RunLimits(steps=1))
    assert failure(traces.one('invoke_agent agent')) == (StatusCode.ERROR, 'max_steps')


async def test_a_request_that_has_to_be_made_again_is_two_spans(traces: Traces) -> None:
    replies = [code("print('y' * 4000)"), ContextOverflow('too long'), ANSWER]
    await watch(replies, OpenTelemetryHook(traces.provider))
    chats = [failure(span)[0] for span in traces.spans if span.name == 'chat script']
    assert chats == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.UNSET]


def test_events_in_the_wrong_order_make_no_error(traces: Traces) -> None:
    hook = OpenTelemetryHook(traces.provider)
    for kind in ('model_replied', 'cell_finished', 'tool_returned', 'text', 'run_failed', 'run_failed', 'run_finished'):
        hook(sample(kind, run='1', agent='a'))
    assert traces.names == ['invoke_agent a']


# What was said --------------------------------------------------------------------------------------------------------

TALK = [
    code(f"said = tell('{SECRET}')\nprint(said)\nraise ValueError(said)"),
    code('final_answer(said)'),
]


def tell(text: str) -> str:
    """Say it again."""
    return text


def everything(traces: Traces) -> str:
    """All that is exported, as text."""
    return '\n'.join(str(span.to_json()) for span in traces.spans)


async def test_nothing_that_was_said_is_exported_by_default(traces: Traces) -> None:
    await watch(TALK, OpenTelemetryHook(traces.provider), tools=[tell], task=SECRET)
    with pytest.raises(ModelError):
        await watch([ModelError(SECRET)], OpenTelemetryHook(traces.provider))
    assert SECRET not in everything(traces)


async def test_what_was_said_is_exported_on_demand_but_no_keys(traces: Traces) -> None:
    key = 'sk-proj-abcdefghijklmnopqrstuvwxyz123456'
    hook = OpenTelemetryHook(traces.provider, content=True)
    await watch(TALK, hook, tools=[tell], task=f'{SECRET} and {key}')
    root = attributes(traces.one('invoke_agent agent'))
    [said] = json.loads(str(root['gen_ai.input.messages']))
    assert said['role'] == 'user'
    assert SECRET in said['parts'][0]['content']
    assert json.loads(str(root['gen_ai.output.messages']))[0]['parts'][0]['content'] == SECRET
    called = attributes(traces.one('execute_tool tell'))
    assert json.loads(str(called['gen_ai.tool.call.arguments'])) == {'text': SECRET}
    assert called['gen_ai.tool.call.result'] == repr(SECRET)
    assert key not in everything(traces)


def test_without_opentelemetry_the_extra_is_named() -> None:
    program = (
        'import sys\n'
        "sys.modules['opentelemetry'] = None\n"
        'from habilis.agent.hooks import OpenTelemetryHook\n'
        'try:\n    OpenTelemetryHook()\n'
        'except ImportError as error:\n    print(error)\n'
    )
    child = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=600, check=True)
    assert "pip install 'habilis[otel]'" in child.stdout


def test_importing_the_hooks_loads_nothing_that_they_may_not_need() -> None:
    program = (
        'import sys\n'
        'from habilis.agent.hooks import OpenTelemetryHook, JupyterView, TerminalView, TokenTracker\n'
        "print(sorted({'rich.console', 'opentelemetry', 'IPython'} & sys.modules.keys()))\n"
    )
    child = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=600, check=True)
    assert child.stdout == '[]\n'
