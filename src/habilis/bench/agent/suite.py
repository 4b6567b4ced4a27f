"""The whole run of `habilis bench agent`."""

from collections.abc import Callable
from dataclasses import dataclass

from habilis.bench.agent import loading, steps
from habilis.bench.agent.concurrent_runs import crowd
from habilis.bench.agent.first_token import first_token
from habilis.bench.agent.peers import LOOP_PEERS, LoopPeer
from habilis.bench.measurement import load, sample
from habilis.bench.sandbox.timings import settle
from habilis.bench.sandbox.peers import WrongAnswer
from habilis.bench.report import Report, Row, Target, report_of, timed

Tell = Callable[[str], None]
MEGABYTE = 1 << 20
AT_ONCE = 200


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much to repeat."""

    runs: int
    tokens: int
    loads: int


FULL = Effort(runs=50, tokens=50, loads=9)
QUICK = Effort(runs=5, tokens=10, loads=3)


async def measure(*, quick: bool, tell: Tell) -> Report:
    """Measure everything. Takes about a minute, or some seconds if quick."""
    effort = QUICK if quick else FULL
    busy = load()
    tell('a first run')
    await steps.ours()  # builds the component if need be
    rows = [
        *await _steps(effort, tell),
        *_crowd(tell),
        *await _first_token(effort, tell),
        *_loading(effort, tell),
    ]
    return report_of(rows, load=busy, quick=quick)


async def _steps(effort: Effort, tell: Tell) -> list[Row]:
    """Ours, the bare cell, each peer, ours, …: what disturbs the machine disturbs all."""
    tell('steps')
    reasons = {peer.key: await _reason(peer) for peer in LOOP_PEERS}
    present = [peer for peer in LOOP_PEERS if not reasons[peer.key]]
    mine: list[float] = []
    cells: list[float] = []
    theirs: dict[str, list[float]] = {peer.key: [] for peer in present}
    for _ in range(effort.runs):
        mine.append(await steps.ours())
        await settle()
        cells.append(await steps.cell())
        await settle()
        for peer in present:
            theirs[peer.key].append(await peer.per_step())
            await settle()
    step, cell = sample(mine), sample(cells)
    rows = [
        timed('step', f'agent step, model excluded (of {steps.STEPS} in a run)', step, 3.0),
        timed('cell', 'of it the sandbox alone, with the same code', cell),
        Row(key='cell_share', what='its share', unit=' %', value=100 * cell.median / step.median),
    ]
    for peer in LOOP_PEERS:
        key, what = f'step_{peer.key}', f'the same step with {peer.what}'
        if reason := reasons[peer.key]:
            rows.append(Row(key=key, what=what, unit='ms', note=reason))
            continue
        spread = sample(theirs[peer.key])
        ratio = step.median / spread.median
        rows.append(timed(key, what, spread))
        rows.append(Row(key=f'step_by_{peer.key}', what=f'our step ÷ that of {peer.key}', unit='×', value=ratio))
    return rows


async def _reason(peer: LoopPeer) -> str:
    """Why a peer is not measured; empty if one run of it works, which also imports it."""
    if reason := peer.absent():
        return reason
    try:
        await peer.per_step()
    except (WrongAnswer, ImportError, AttributeError, TypeError, ValueError) as error:  # another version of it
        return f'does not work here: {type(error).__name__}: {error}'
    return ''


def _crowd(tell: Tell) -> list[Row]:
    tell(f'{AT_ONCE} runs at once')
    found = crowd(AT_ONCE)
    needs_linux = '' if found.pss is not None else 'needs /proc/self/smaps_rollup of Linux'
    return [
        Row(
            key='runs',
            what=f'{AT_ONCE} runs at once in a process, all right',
            unit=f'/{found.count}',
            value=found.right,
            target=Target(bound=found.count, sense='at least'),
        ),
        Row(key='runs_seconds', what='all of them together', unit='s', value=found.seconds),
        Row(key='runs_rate', what='runs per second', unit='/s', value=found.count / found.seconds),
        Row(
            key='runs_memory',
            what='memory per run, all alive (PSS)',
            unit='MB',
            value=None if found.pss is None else found.pss / found.count / MEGABYTE,
            note=needs_linux,
        ),
    ]


async def _first_token(effort: Effort, tell: Tell) -> list[Row]:
    tell('the first token')
    found = await first_token(effort.tokens)
    return [
        timed('first_token_sdk', 'first token through the bare SDK, server on this machine', found.sdk),
        timed('first_token_model', 'later through our model', found.model_adds),
        timed('first_token', 'later through the agent, with its sandbox', found.agent_adds, 20.0),
    ]


def _loading(effort: Effort, tell: Tell) -> list[Row]:
    tell('imports')
    package, agent = loading.PACKAGE, loading.AGENT
    return [
        timed('import', f'`{package}`', loading.loading(package, effort.loads)),
        timed('import_agent', f'`{agent}`', loading.loading(agent, effort.loads)),
        timed(
            'import_request',
            'what a first request imports (model layer and SDK)',
            loading.loading(loading.FIRST_REQUEST, effort.loads, before=agent),
        ),
    ]
