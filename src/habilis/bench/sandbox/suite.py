"""The whole benchmark, in an order that keeps one measurement out of the way of another."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from habilis.bench import humaneval, ours
from habilis.bench.measurement import cores, load, per_second, sample, seconds
from habilis.bench.sandbox.peers import Peer, WrongAnswer, all_peers
from habilis.bench.report import Comparison, Pair, Report, Row, Target, report_of, timed
from habilis.sandbox.session import Sandbox

Tell = Callable[[str], None]
GIGABYTE = 1 << 30
MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much to repeat."""

    rounds: int
    slow_rounds: int
    cells: int
    few: int
    window: float
    windows: int
    live: int
    every: int
    """Which problems of HumanEval: every first, every fourth, …"""


FULL = Effort(rounds=100, slow_rounds=10, cells=1000, few=9, window=2.0, windows=3, live=1000, every=1)
QUICK = Effort(rounds=20, slow_rounds=3, cells=200, few=3, window=0.5, windows=1, live=100, every=4)


async def measure(*, quick: bool, tell: Tell) -> Report:
    """Measure everything. Takes some minutes, or well under one if quick."""
    effort = QUICK if quick else FULL
    busy = load()
    tell('a first sandbox')
    await ours.new()  # builds the component if need be
    comparisons = tuple([await _compare(peer, effort, tell) for peer in all_peers()])
    rows = [
        *await _new(effort, tell),
        *_against(comparisons),
        await _rate(effort, tell),
        await _later(effort, tell),
        await _host_call(effort, tell),
        await _gather(effort, tell),
        *_live(effort, tell),
        _start_up(effort, tell),
        await _humaneval(effort, tell),
    ]
    return report_of(rows, load=busy, quick=quick, peers=comparisons)


def _callers() -> int:
    """Twice the cores, for ours and for the peers: while one waits for Python's lock, another computes."""
    return 2 * cores()


# Ours -----------------------------------------------------------------------------------------------------------------


async def _new(effort: Effort, tell: Tell) -> list[Row]:
    tell('new sandbox + first result')
    ahead: list[float] = []
    cold: list[float] = []
    for _ in range(effort.rounds):
        ahead.append(await ours.new())
        cold.append(await ours.new_cold())
    return [
        timed('new', 'new sandbox + first result', sample(ahead), 3.5),
        timed('new_cold', 'new + first result with a mount, none started ahead', sample(cold), 3.5),
    ]


async def _rate(effort: Effort, tell: Tell) -> Row:
    tell('fresh sandboxes per second')
    rates = sample([await ours.rate(_callers(), effort.window) for _ in range(max(3, effort.windows))])
    return Row(
        key='rate',
        what=f'fresh sandboxes per second, {cores()} cores',
        unit='/s',
        value=rates.median,
        spread=rates,
        target=Target(bound=500, sense='at least'),
    )


async def _later(effort: Effort, tell: Tell) -> Row:
    tell('later cells')
    async with await Sandbox.create() as sandbox:
        await ours.later(sandbox)
        await ours.settle()
        times = [await ours.later(sandbox) for _ in range(effort.cells)]
    return timed('later', 'later cell', sample(times), 0.25)


async def _host_call(effort: Effort, tell: Tell) -> Row:
    tell('host calls')
    what = f'host call (of {ours.CALLS:,} in a cell)'
    return timed('host_call', what, await ours.host_call(effort.few), 0.1)


async def _gather(effort: Effort, tell: Tell) -> Row:
    tell('tools at once')
    what = f'asyncio.gather of {ours.TOOLS_AT_ONCE} tools of {ours.TOOL_SECONDS} s'
    return timed('gather', what, await ours.gather(effort.few), 0.25, unit='s')


def _live(effort: Effort, tell: Tell) -> list[Row]:
    tell(f'{effort.live:,} live sandboxes')
    grown = ours.live(effort.live)
    if grown is None:
        note = 'needs /proc/self/smaps_rollup of Linux'
        return [Row(key='live', what='1,000 live sandboxes', unit='GB', note=note)]
    each, each_rss = grown.pss / grown.count, grown.rss / grown.count
    measured = '' if grown.count >= 1000 else f'from {grown.count}'
    return [
        Row(
            key='memory', what=f'memory per live sandbox (PSS, {grown.count:,} live)', unit='MB', value=each / MEGABYTE
        ),
        Row(key='memory_rss', what='the same as RSS', unit='MB', value=each_rss / MEGABYTE),
        Row(
            key='live',
            what='1,000 live sandboxes',
            unit='GB',
            value=1000 * each / GIGABYTE,
            target=Target(bound=8),
            note=measured,
        ),
    ]


def _start_up(effort: Effort, tell: Tell) -> Row:
    tell('start-up of a process')
    return timed('start_up', 'fresh process to first result, warm cache', ours.start_up(effort.few), 0.5, unit='s')


async def _humaneval(effort: Effort, tell: Tell) -> Row:
    what = 'HumanEval passed'
    if not humaneval.is_installed():
        return Row(key='humaneval', what=what, unit='problems', note=humaneval.GET_IT)
    tell('HumanEval')
    programs = dict(list(humaneval.programs().items())[:: effort.every])
    result = await humaneval.solve(programs, tell)
    return Row(
        key='humaneval',
        what=what,
        unit=f'/{result.total}',
        value=result.passed,
        target=Target(bound=result.total, sense='at least'),
        note='; '.join(result.failed[:5]),
    )


# Beside the peers -----------------------------------------------------------------------------------------------------


async def _compare(peer: Peer, effort: Effort, tell: Tell) -> Comparison:
    """Ours, theirs, ours, theirs: what disturbs the machine disturbs both."""
    if reason := peer.absent():
        return Comparison(peer=peer.name, isolation=peer.isolation, absent=reason)
    tell(f'beside {peer.name}')
    try:
        peer.start()
        try:
            rounds = effort.slow_rounds if peer.is_slow else effort.rounds
            new, new_cold = await _new_in_turns(peer, rounds)
            return Comparison(
                peer=peer.name,
                isolation=peer.isolation,
                new=new,
                new_cold=new_cold,
                later=await _later_in_turns(peer, effort.cells) if peer.keeps_state else None,
                rate=await _rate_in_turns(peer, effort),
            )
        finally:
            peer.stop()
    except (WrongAnswer, ImportError, AttributeError, OSError) as error:  # another version of it, or a broken one
        reason = f'does not work here: {type(error).__name__}: {error}'
        return Comparison(peer=peer.name, isolation=peer.isolation, absent=reason)


async def _new_in_turns(peer: Peer, rounds: int) -> tuple[Pair, Pair]:
    """Ours as it is used, and ours with nothing started ahead."""
    ahead: list[float] = []
    cold: list[float] = []
    theirs: list[float] = []
    peer.cycle()
    for _ in range(rounds):
        ahead.append(await ours.new())
        started = time.perf_counter()
        session = peer.new()
        theirs.append(time.perf_counter() - started)
        peer.end(session)
        cold.append(await ours.new_cold())
    peers = sample(theirs)
    return Pair(ours=sample(ahead), peer=peers), Pair(ours=sample(cold), peer=peers)


async def _later_in_turns(peer: Peer, cells: int) -> Pair:
    mine: list[float] = []
    theirs: list[float] = []
    session = peer.new()
    async with await Sandbox.create() as sandbox:
        await ours.later(sandbox)
        await ours.settle()
        for _ in range(cells):
            mine.append(await ours.later(sandbox))
            theirs.append(seconds(lambda: peer.later(session)))
    peer.end(session)
    return Pair(ours=sample(mine), peer=sample(theirs))


async def _rate_in_turns(peer: Peer, effort: Effort) -> Pair:
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(effort.windows):
        mine.append(await ours.rate(_callers(), effort.window))
        await ours.settle()
        theirs.append(per_second(peer.cycle, threads=_callers(), window=effort.window))
    return Pair(ours=sample(mine), peer=sample(theirs))


def _against(comparisons: tuple[Comparison, ...]) -> list[Row]:
    """The targets that are ratios: no slower than pyeryx, a hundredth of `docker run`."""
    rows: list[Row] = []
    for name, bound in (('pyeryx', 1.0), ('docker', 0.01)):
        for found in comparisons:
            if found.peer.startswith(name) and found.new and found.new_cold:
                what, target = f'new + first result ÷ that of {name}', Target(bound=bound)
                ahead, cold = 1 / found.new.ratio, 1 / found.new_cold.ratio
                rows += [
                    Row(key=f'new_by_{name}', what=what, unit='×', value=ahead, target=target),
                    Row(
                        key=f'new_cold_by_{name}',
                        what=f'{what}, none started ahead',
                        unit='×',
                        value=cold,
                        target=target,
                    ),
                ]
    return rows
