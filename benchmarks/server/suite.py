"""All measurements of `python -m benchmarks server`."""

import asyncio
import gzip
import re
from dataclasses import dataclass

from benchmarks.measurement import Sample, interleave, load_average, summarize
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from benchmarks.server.browser import browser_times, why_no_browser
from benchmarks.server.command import start_server
from benchmarks.server.streams import step_seconds
from habilis.server.assistant.page_files import FOLDER

MEGABYTE = 1 << 20
LATE_TARGET, DRAWN_TARGET, ADDED_TARGET = 30.0, 2.0, 3.0
READY_TARGET, IDLE_TARGET, SIZE_TARGET = 1.0, 120.0, 90.0


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sizes, and number of repeats."""

    agents: int = 200
    streams: int = 500
    rounds: int
    records: int
    long: int = 6000


FULL = Effort(rounds=5, records=500)
QUICK = Effort(rounds=2, records=100)


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes some minutes."""
    load, effort = load_average(), QUICK if quick else FULL
    progress('the start of the command')
    rows = await _start_rows(effort)
    progress('the page in a browser')
    rows += [_size_row(), *await _browser_rows(effort)]
    progress(f'{effort.agents} agents with {effort.streams} streams')
    rows.append(await _stream_row(effort))
    return make_report(rows, load=load, quick=quick)


async def _start_rows(effort: Effort) -> list[Row]:
    started = [await asyncio.to_thread(start_server) for _ in range(effort.rounds)]
    memory = started[-1].rss
    return [
        time_row('ready', 'habilis serve answers', summarize([one.seconds for one in started]), READY_TARGET, unit='s'),
        time_row('ready_cpu', 'processor time of it', summarize([one.processor_seconds for one in started]), unit='s'),
        Row(
            key='idle',
            label='memory when idle (RSS)',
            unit='MB',
            value=None if memory is None else memory / MEGABYTE,
            target=Target(bound=IDLE_TARGET),
            note='' if memory else 'only on Linux',
        ),
    ]


def _size_row() -> Row:
    page = (FOLDER / 'index.html').read_bytes()
    names = [name.decode() for name in re.findall(rb'(?:src|href)="/([\w.-]+\.(?:js|css))"', page)]
    size = sum(len(gzip.compress((FOLDER / name).read_bytes())) for name in names)
    target = Target(bound=SIZE_TARGET)
    return Row(
        key='first_view', label='JS and CSS of the first view, gzipped', unit='kB', value=size / 1e3, target=target
    )


async def _browser_rows(effort: Effort) -> list[Row]:
    labels = 'record in the browser, p95', f'{effort.long:,} records drawn'
    if missing := why_no_browser():
        keys = ('late', 'ms', LATE_TARGET), ('drawn', 's', DRAWN_TARGET)
        return [
            Row(key=key, label=label, unit=unit, target=Target(bound=bound), note=missing)
            for (key, unit, bound), label in zip(keys, labels, strict=True)
        ]
    times = await browser_times(records=effort.records, long=effort.long, rounds=effort.rounds)
    late = sorted(times.late)
    p95 = late[int(0.95 * len(late))]
    spread = Sample(median=p95, low=late[len(late) // 2], high=late[-1], repeats=len(late))
    return [
        time_row('late', labels[0], spread, LATE_TARGET),
        time_row('drawn', labels[1], summarize(times.drawn), DRAWN_TARGET, unit='s'),
        time_row('drawn_cpu', 'processor time of it', summarize(times.processor), unit='s'),
    ]


async def _stream_row(effort: Effort) -> Row:
    await step_seconds(2, 2)  # loads what all share
    without, watched = await interleave(
        effort.rounds,
        lambda: step_seconds(effort.agents, 0),
        lambda: step_seconds(effort.agents, effort.streams),
    )
    added = Sample(
        median=watched.median - without.median,
        low=watched.low - without.low,
        high=watched.high - without.high,
        repeats=effort.rounds,
    )
    label = f'{effort.streams} streams of {effort.agents} agents, added to a step (processor)'
    return time_row('added', label, added, ADDED_TARGET)
