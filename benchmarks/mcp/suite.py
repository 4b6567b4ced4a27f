"""All measurements of `python -m benchmarks mcp`."""

import json
import time

from benchmarks.installation import why_missing
from benchmarks.mcp.calls import call_times, listing_time
from benchmarks.mcp.queries import QUERIES
from benchmarks.mcp.sample_tools import same_name, toolsets
from benchmarks.measurement import Sample, load_average, summarize
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from habilis.agent import Agent
from habilis.models import ScriptedModel
from habilis.models.tokens import count_message_tokens, count_tokens
from habilis.tools import Tool, Toolbox

COUNTS = (10, 100, 1000)
STUBS_TARGET = 150.0
PROMPT_TARGET = 1500.0
OVERHEAD_TARGET = 0.5
TOP = 5


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes less than a minute."""
    load, rounds = load_average(), 1 if quick else 10
    progress('prompts')
    rows = [row for count in COUNTS for row in await _prompt_rows(count)]
    progress('stubs and searches')
    rows += [_stub_row(rounds), *_search_rows()]
    progress('calls of a server')
    rows += await _call_rows(rounds)
    return make_report(rows, load=load, quick=quick)


def _tools(count: int) -> list[Tool[..., object]]:
    return [tool for toolset in toolsets(count) for tool in toolset.tools]


async def _prompt_rows(count: int) -> list[Row]:
    """Tokens of the first request with so many tools, and of the same tools as JSON schemas."""
    model = ScriptedModel(['```python\nfinal_answer(1)\n```'])
    async with Agent(model, tools=toolsets(count), journal='off') as agent:
        await agent.run('Hello')
    schemas = [
        json.dumps({'name': tool.name, 'description': tool.description, 'parameters': tool.parameters})
        for tool in _tools(count)
    ]
    tokens = count_message_tokens(model.requests[0].messages)
    target = Target(bound=PROMPT_TARGET) if count == max(COUNTS) else None
    return [
        Row(key=f'prompt_{count}', label=f'prompt with {count:,} tools', unit=' tokens', value=tokens, target=target),
        Row(
            key=f'schemas_{count}',
            label=f'the same {count:,} tools as JSON schemas',
            unit=' tokens',
            value=count_tokens('\n'.join(schemas)),
        ),
    ]


def _stub_row(rounds: int) -> Row:
    times: list[float] = []
    for _ in range(rounds):
        tools = _tools(max(COUNTS))
        started = time.perf_counter()
        stubs = [tool.stub for tool in tools]
        times.append(time.perf_counter() - started)
        assert len(stubs) == max(COUNTS)
    return time_row('stubs', f'{max(COUNTS):,} tools turned into stubs', summarize(times), STUBS_TARGET)


def _search_rows() -> list[Row]:
    """Searches with words that were chosen without the tools: time, and how often the right tool is found."""
    given = toolsets(max(COUNTS))
    names = [tool.name for toolset in given for tool in toolset.tools]
    [search, *_] = [tool for tool in Toolbox(given, unlisted=names).tools if tool.name == 'search_tools']
    first = _seconds(search, 'anything')[0]
    found = {query: _seconds(search, query) for query in QUERIES}
    right = {
        query: next((place for place, name in enumerate(_named(text)) if same_name(name, QUERIES[query])), None)
        for query, (_, text) in found.items()
    }
    shown = [place for place in right.values() if place is not None]
    size = f'of {len(QUERIES)} queries'
    return [
        time_row('index', f'first search of {max(COUNTS):,} tools', summarize([first])),
        time_row('search', 'a later search', summarize([seconds for seconds, _ in found.values()])),
        Row(key='top', label=f'right tool in the top {TOP}', unit=f' {size}', value=sum(at < TOP for at in shown)),
        Row(key='named', label='right tool named at all', unit=f' {size}', value=len(shown)),
    ]


def _seconds(search: Tool[..., object], query: str) -> tuple[float, str]:
    started = time.perf_counter()
    text = search(query)
    return time.perf_counter() - started, str(text)


def _named(text: str) -> list[str]:
    """The tools in the result of a search, in their order."""
    stubs, _, more = text.partition('# less likely: ')
    shown = [line.partition('def ')[2].partition('(')[0] for line in stubs.splitlines() if line.startswith('def ')]
    return [*shown, *more.split(', ')] if more else shown


async def _call_rows(rounds: int) -> list[Row]:
    if missing := why_missing('mcp'):
        return [Row(key='bare_call', label='call with the SDK alone', unit='ms', note=missing)]
    [bare, ours] = await call_times(100 * rounds)
    above = Sample(
        median=ours.median - bare.median, low=ours.low - bare.low, high=ours.high - bare.high, repeats=ours.repeats
    )
    listed = await listing_time(max(COUNTS), rounds)
    return [
        time_row('bare_call', 'call with the SDK alone', bare),
        time_row('call_overhead', 'call with the client, above the SDK', above, OVERHEAD_TARGET),
        time_row('listing', f'{max(COUNTS):,} tools listed and turned into stubs', listed, STUBS_TARGET),
    ]
