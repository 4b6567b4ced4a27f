"""All measurements of `python -m benchmarks agent`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from benchmarks.agent import steps
from benchmarks.agent.concurrent_runs import concurrent_runs
from benchmarks.agent.first_token import first_token
from benchmarks.agent.import_time import AGENT, FIRST_REQUEST, PACKAGE, import_time
from benchmarks.agent.peers import AGENT_PEERS, AgentPeer
from benchmarks.installation import PeerError
from benchmarks.measurement import interleave, load_average
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from benchmarks.sandbox.timings import settle

MEGABYTE = 1 << 20
CONCURRENT_RUNS = 200


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Number of repeats."""

    runs: int
    tokens: int
    imports: int


FULL = Effort(runs=50, tokens=50, imports=9)
QUICK = Effort(runs=2, tokens=4, imports=1)


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes about a minute; some seconds if quick."""
    effort = QUICK if quick else FULL
    load = load_average()
    progress('a first run')
    await steps.agent_step()  # builds the component if there is none
    rows = [
        *await _steps(effort, progress),
        *_concurrent_runs(progress),
        *await _first_token(effort, progress),
        *_imports(effort, progress),
    ]
    return make_report(rows, load=load, quick=quick)


async def _steps(effort: Effort, progress: Progress) -> list[Row]:
    """The agent, the sandbox alone and each peer, interleaved."""
    progress('steps')
    reasons = {peer.key: await _unavailable(peer) for peer in AGENT_PEERS}
    present = [peer for peer in AGENT_PEERS if not reasons[peer.key]]
    measures = [steps.agent_step, steps.sandbox_step, *(peer.step for peer in present)]
    step, cell, *others = await interleave(effort.runs, *map(_settled, measures))
    times = dict(zip([peer.key for peer in present], others, strict=True))
    rows = [
        time_row('step', f'agent step without the model ({steps.STEPS} steps per run)', step, 3.0),
        time_row('cell', 'the sandbox alone with the same code', cell),
        Row(key='cell_share', label='share of the sandbox', unit=' %', value=100 * cell.median / step.median),
    ]
    for peer in AGENT_PEERS:
        key, label = f'step_{peer.key}', f'the same step with {peer.label}'
        if reason := reasons[peer.key]:
            rows.append(Row(key=key, label=label, unit='ms', note=reason))
            continue
        ratio = step.median / times[peer.key].median
        rows.append(time_row(key, label, times[peer.key]))
        rows.append(Row(key=f'step_by_{peer.key}', label=f'our step ÷ {peer.key}', unit='×', value=ratio))
    return rows


def _settled(measure: Callable[[], Awaitable[float]]) -> Callable[[], Awaitable[float]]:
    """The measurement, followed by a pause in which the next interpreters start."""

    async def settled() -> float:
        taken = await measure()
        await settle()
        return taken

    return settled


async def _unavailable(peer: AgentPeer) -> str:
    """Why a peer cannot be measured; empty if one run works, which also imports it."""
    if reason := peer.unavailable():
        return reason
    try:
        await peer.step()
    except (PeerError, ImportError, AttributeError, TypeError, ValueError) as error:  # an incompatible version
        return f'does not work: {type(error).__name__}: {error}'
    return ''


def _concurrent_runs(progress: Progress) -> list[Row]:
    progress(f'{CONCURRENT_RUNS} concurrent runs')
    found = concurrent_runs(CONCURRENT_RUNS)
    return [
        Row(
            key='runs',
            label=f'{CONCURRENT_RUNS} concurrent runs in a process, correct',
            unit=f'/{found.count}',
            value=found.correct,
            target=Target(bound=found.count, sense='at least'),
        ),
        Row(key='runs_seconds', label='total time', unit='s', value=found.seconds),
        Row(key='runs_rate', label='runs per second', unit='/s', value=found.count / found.seconds),
        Row(
            key='runs_memory',
            label='memory per live run (PSS)',
            unit='MB',
            value=None if found.pss is None else found.pss / found.count / MEGABYTE,
            note='' if found.pss is not None else 'needs /proc/self/smaps_rollup of Linux',
        ),
    ]


async def _first_token(effort: Effort, progress: Progress) -> list[Row]:
    progress('first token')
    found = await first_token(effort.tokens)
    return [
        time_row('first_token_sdk', 'first token through the bare SDK, local server', found.sdk),
        time_row('first_token_model', 'added by our model layer', found.model_adds),
        time_row('first_token', 'added by the agent and its sandbox', found.agent_adds, 20.0),
    ]


def _imports(effort: Effort, progress: Progress) -> list[Row]:
    progress('imports')
    return [
        time_row('import', f'`{PACKAGE}`', import_time(PACKAGE, effort.imports)),
        time_row('import_agent', f'`{AGENT}`', import_time(AGENT, effort.imports)),
        time_row(
            'import_request',
            'imports of the first request (model layer and SDK)',
            import_time(FIRST_REQUEST, effort.imports, before=AGENT),
        ),
    ]
