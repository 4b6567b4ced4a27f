"""All measurements of `python -m benchmarks integrations`."""

import time
from dataclasses import dataclass
from functools import partial

from benchmarks.installation import PeerError
from benchmarks.integrations.executors import PAIRS, Executor, Session
from benchmarks.measurement import interleave, load_average
from benchmarks.report import Progress, Report, Row, make_report, time_row
from benchmarks.sandbox import humaneval
from benchmarks.sandbox.timings import ANSWER, CODE, settle


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Number of repeats."""

    rounds: int
    steps: int
    loops: int
    every: int
    """Run every n-th problem of HumanEval."""


FULL = Effort(rounds=50, steps=300, loops=10, every=1)
QUICK = Effort(rounds=5, steps=20, loops=1, every=20)
LOOP, LOOP_ANSWER = 'sum([number % 7 for number in range(30_000)])', 89_995
"""Code that computes, as the code of an agent does that goes through some data."""


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes some minutes; less than one if quick."""
    effort = QUICK if quick else FULL
    load = load_average()
    rows: list[Row] = []
    for pair in PAIRS:
        if reason := next(filter(None, (each.unavailable() for each in pair)), None):
            rows.append(Row(key=pair[0].key, label=pair[0].label, unit='ms', note=reason))
            continue
        rows += await _speed(pair, effort, progress)
        for executor in pair:
            rows.append(await _humaneval(executor, effort, progress))
    return make_report(rows, load=load, quick=quick)


async def _speed(pair: tuple[Executor, Executor], effort: Effort, progress: Progress) -> list[Row]:
    """First result and later ones of both, interleaved, and the ratio."""
    progress(f'{pair[0].key}: speed')
    for executor in pair:
        await _first(executor)
    first = await interleave(effort.rounds, *(partial(_first, each) for each in pair))
    sessions = [each.start() for each in pair]
    for session in sessions:
        await session.run(CODE)
    later = await interleave(effort.steps, *(partial(_step, session) for session in sessions))
    loop = await interleave(effort.loops, *(partial(_step, session, LOOP, LOOP_ANSWER) for session in sessions))
    for session in sessions:
        await session.end()
    rows: list[Row] = []
    measured = (('new', 'first result', first), ('later', 'later result', later), ('loop', 'a loop of 30,000', loop))
    for what, label, (theirs, ours) in measured:
        rows += [
            time_row(f'{each.key}_{what}', f'{each.label}: {label}', sample)
            for each, sample in zip(pair, (theirs, ours), strict=True)
        ]
        ratio = ours.median / theirs.median
        rows.append(Row(key=f'{pair[0].key}_{what}_ratio', label=f'{label}: ours ÷ default', unit='×', value=ratio))
    return rows


async def _first(executor: Executor) -> float:
    """Seconds of a new executor and its first result."""
    started = time.perf_counter()
    session = executor.start()
    await _check(session)
    taken = time.perf_counter() - started
    await session.end()
    await settle()
    return taken


async def _step(session: Session, code: str = CODE, answer: object = ANSWER) -> float:
    started = time.perf_counter()
    await _check(session, code, answer)
    return time.perf_counter() - started


async def _check(session: Session, code: str = CODE, answer: object = ANSWER) -> None:
    if (returned := await session.run(code)) != answer:
        msg = f'{code} returned {returned!r}'
        raise PeerError(msg)


async def _humaneval(executor: Executor, effort: Effort, progress: Progress) -> Row:
    """How many reference solutions of HumanEval pass their tests, each in a new executor."""
    label = f'{executor.label}: HumanEval passed'
    if not humaneval.is_installed():
        return Row(key=f'{executor.key}_humaneval', label=label, unit='problems', note=humaneval.INSTALL)
    failed: list[str] = []
    selected = dict(list(humaneval.programs().items())[:: effort.every])
    for number, (name, program) in enumerate(selected.items()):
        if number % 20 == 0:
            progress(f'{executor.key}: HumanEval {number}/{len(selected)}')
        session = executor.start()
        try:
            await session.run(program)
        except Exception as error:  # each executor has errors of its own
            failed.append(f'{name} ({_last_line(error)})')
        await session.end()
    passed = len(selected) - len(failed)
    note = '; '.join(failed[:5]) + (f' and {len(failed) - 5} more' if len(failed) > 5 else '')
    return Row(key=f'{executor.key}_humaneval', label=label, unit=f'/{len(selected)}', value=passed, note=note)


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:100]
