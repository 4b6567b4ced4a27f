"""All measurements of `python -m benchmarks sandbox`."""

import time
from dataclasses import dataclass
from functools import partial

from benchmarks.installation import PeerError
from benchmarks.measurement import calls_per_second, cpu_count, interleave, load_average
from benchmarks.report import Pair, PeerRow, Progress, Report, Row, Target, make_report, time_row
from benchmarks.sandbox import humaneval, timings
from benchmarks.sandbox.peers import Peer, all_peers
from habilis.sandbox.session import Sandbox

GIGABYTE = 1 << 30
MEGABYTE = 1 << 20
ROW = 8
"""New sandboxes one right after another."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Number of repeats."""

    rounds: int
    slow_rounds: int
    cells: int
    few: int
    window: float
    windows: int
    live: int
    every: int
    """Run every n-th problem of HumanEval."""


FULL = Effort(rounds=100, slow_rounds=10, cells=1000, few=9, window=2.0, windows=3, live=1000, every=1)
QUICK = Effort(rounds=10, slow_rounds=2, cells=100, few=2, window=0.5, windows=1, live=100, every=4)


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes some minutes; under one minute if quick."""
    effort = QUICK if quick else FULL
    load = load_average()
    progress('a first sandbox')
    await timings.new_sandbox()  # builds the component if there is none
    peers = [await _measure_peer(peer, effort, progress) for peer in all_peers()]
    rows = [
        *await _new(effort, progress),
        *_ratios(peers),
        await _rate(effort, progress),
        await _later(effort, progress),
        await _tool_call(effort, progress),
        await _concurrent_tools(effort, progress),
        *_live(effort, progress),
        _process_start(effort, progress),
        await _humaneval(effort, progress),
    ]
    return make_report(rows, load=load, quick=quick, peers=peers)


def _callers() -> int:
    """Twice the cores: while one caller waits for the GIL, another computes."""
    return 2 * cpu_count()


# Habilis --------------------------------------------------------------------------------------------------------------


async def _new(effort: Effort, progress: Progress) -> list[Row]:
    progress('new sandbox + first result')
    warm, mounted, cold = await interleave(
        effort.rounds, timings.new_sandbox, timings.new_sandbox_with_mount, timings.new_sandbox_cold
    )
    return [
        time_row('new', 'new sandbox + first result', warm, 3.5),
        time_row('new_mount', 'the same with a mount', mounted, 3.5),
        time_row('new_cold', 'the same with a mount, no interpreter prestarted', cold, 3.5),
    ]


async def _rate(effort: Effort, progress: Progress) -> Row:
    progress('new sandboxes per second')
    [rates] = await interleave(max(3, effort.windows), partial(timings.sandboxes_per_second, _callers(), effort.window))
    return Row(
        key='rate',
        label=f'new sandboxes per second, {cpu_count()} cores',
        unit='/s',
        value=rates.median,
        spread=rates,
        target=Target(bound=500, sense='at least'),
    )


async def _later(effort: Effort, progress: Progress) -> Row:
    progress('later cells')
    async with await Sandbox.create() as sandbox:
        await timings.warm_up(sandbox)
        [times] = await interleave(effort.cells, partial(timings.later_cell, sandbox))
    return time_row('later', 'later cell', times, 0.25)


async def _tool_call(effort: Effort, progress: Progress) -> Row:
    progress('tool calls')
    label = f'tool call ({timings.CALLS:,} in a cell)'
    return time_row('host_call', label, await timings.tool_call(effort.few), 0.1)


async def _concurrent_tools(effort: Effort, progress: Progress) -> Row:
    progress('concurrent tools')
    label = f'asyncio.gather of {timings.CONCURRENT_TOOLS} tools of {timings.TOOL_SECONDS} s'
    return time_row('gather', label, await timings.concurrent_tools(effort.few), 0.25, unit='s')


def _live(effort: Effort, progress: Progress) -> list[Row]:
    progress(f'{effort.live:,} live sandboxes')
    growth = timings.live_sandboxes(effort.live)
    live = partial(Row, key='live', label='1,000 live sandboxes: PSS, what they cost', unit='GB')
    if growth is None:
        return [live(note='needs /proc/self/smaps_rollup of Linux')]
    pss, rss = growth.pss / growth.count, growth.rss / growth.count
    extrapolated = '' if growth.count >= 1000 else f'from {growth.count}'
    label = f'live sandbox, {growth.count:,} of them'
    return [
        Row(key='memory', label=f'{label}: PSS, what one more costs', unit='MB', value=pss / MEGABYTE),
        Row(key='memory_rss', label=f'{label}: RSS, shared pages counted in each', unit='MB', value=rss / MEGABYTE),
        live(value=1000 * pss / GIGABYTE, target=Target(bound=8), note=extrapolated),
    ]


def _process_start(effort: Effort, progress: Progress) -> Row:
    progress('process start')
    label = 'new process to first result, warm cache'
    return time_row('start_up', label, timings.process_start(effort.few), 0.5, unit='s')


async def _humaneval(effort: Effort, progress: Progress) -> Row:
    label = 'HumanEval passed'
    if not humaneval.is_installed():
        return Row(key='humaneval', label=label, unit='problems', note=humaneval.INSTALL)
    progress('HumanEval')
    selected = dict(list(humaneval.programs().items())[:: effort.every])
    result = await humaneval.run_programs(selected, progress)
    return Row(
        key='humaneval',
        label=label,
        unit=f'/{result.total}',
        value=result.passed,
        target=Target(bound=result.total, sense='at least'),
        note='; '.join(result.failed[:5]),
    )


# Peers ----------------------------------------------------------------------------------------------------------------


async def _measure_peer(peer: Peer, effort: Effort, progress: Progress) -> PeerRow:
    """Measure Habilis and a peer, interleaved."""
    if reason := peer.unavailable():
        return PeerRow(peer=peer.name, isolation=peer.isolation, unavailable=reason)
    progress(f'{peer.name}')
    try:
        peer.start()
        try:
            rounds = effort.slow_rounds if peer.is_slow else effort.rounds
            new = await _compare_new(peer, rounds)
            row, new_cold = await _compare_rows(peer, max(3, rounds // ROW))
            return PeerRow(
                peer=peer.name,
                isolation=peer.isolation,
                new=new,
                row=row,
                new_cold=new_cold,
                later=await _compare_later(peer, effort.cells) if peer.keeps_state else None,
                rate=await _compare_rate(peer, effort),
            )
        finally:
            peer.stop()
    except (PeerError, ImportError, AttributeError, OSError) as error:  # an incompatible or broken version
        reason = f'does not work: {type(error).__name__}: {error}'
        return PeerRow(peer=peer.name, isolation=peer.isolation, unavailable=reason)


async def _compare_new(peer: Peer, rounds: int) -> Pair:
    """A new sandbox of the peer and of Habilis, after a pause in which both may start an interpreter ahead."""

    async def peer_new() -> float:
        started = time.perf_counter()
        session = peer.new()
        taken = time.perf_counter() - started
        peer.end(session)
        await timings.settle()
        return taken

    peer.cycle()
    ours, theirs = await interleave(rounds, timings.new_sandbox, peer_new)
    return Pair(ours=ours, peer=theirs)


async def _compare_rows(peer: Peer, rounds: int) -> tuple[Pair, Pair]:
    """Several new sandboxes without a pause: of the peer, of Habilis, and of Habilis with nothing started ahead."""

    async def peer_row() -> float:
        taken = 0.0
        for _ in range(ROW):
            started = time.perf_counter()
            session = peer.new()
            taken += time.perf_counter() - started
            peer.end(session)
        await timings.settle()
        return taken / ROW

    row, cold = partial(timings.sandboxes_in_a_row, ROW), partial(timings.cold_sandboxes_in_a_row, ROW)
    ours, theirs, ours_cold = await interleave(rounds, row, peer_row, cold)
    return Pair(ours=ours, peer=theirs), Pair(ours=ours_cold, peer=theirs)


async def _compare_later(peer: Peer, cells: int) -> Pair:
    session = peer.new()

    async def peer_later() -> float:
        started = time.perf_counter()
        peer.later(session)
        return time.perf_counter() - started

    async with await Sandbox.create() as sandbox:
        await timings.warm_up(sandbox)
        ours, theirs = await interleave(cells, partial(timings.later_cell, sandbox), peer_later)
    peer.end(session)
    return Pair(ours=ours, peer=theirs)


async def _compare_rate(peer: Peer, effort: Effort) -> Pair:
    async def peer_rate() -> float:
        await timings.settle()
        return calls_per_second(peer.cycle, threads=_callers(), window=effort.window)

    our_rate = partial(timings.sandboxes_per_second, _callers(), effort.window)
    ours, theirs = await interleave(effort.windows, our_rate, peer_rate)
    return Pair(ours=ours, peer=theirs)


def _ratios(peers: list[PeerRow]) -> list[Row]:
    """Targets that are ratios: at most the time of pyeryx, at most 1 % of `docker run`."""
    rows: list[Row] = []
    for name, bound in (('pyeryx', 1.0), ('docker', 0.01)):
        for found in peers:
            if found.peer.startswith(name) and found.new and found.row and found.new_cold:
                label, target = f'new + first result ÷ {name}', Target(bound=bound)
                row = f', {ROW} in a row'
                pairs = (found.new, ''), (found.row, row), (found.new_cold, f'{row}, not prestarted')
                for key, (pair, note) in zip(('new', 'row', 'new_cold'), pairs, strict=True):
                    ratio = 1 / pair.ratio
                    rows.append(Row(key=f'{key}_by_{name}', label=label + note, unit='×', value=ratio, target=target))
    return rows
