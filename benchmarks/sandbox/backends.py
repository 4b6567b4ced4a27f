"""`python -m benchmarks sandbox --backends`: start and cells of every backend that is usable here."""

import asyncio
import itertools
import time
from functools import partial

from benchmarks.docker import find_docker
from benchmarks.installation import PeerError
from benchmarks.measurement import cpu_count, interleave, load_average
from benchmarks.report import Pair, PeerRow, Progress, Report, Row, Target, make_report, time_row
from benchmarks.sandbox.containers_and_servers import MEASURES
from benchmarks.sandbox.native_peers import native_peers
from benchmarks.sandbox.peers import Peer
from benchmarks.sandbox.timings import CODE, FOLDER, check, later_cell, sandboxes_per_second
from habilis.core.errors import HabilisError
from habilis.core.limits import Limits
from habilis.sandbox.backends import names
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox

WINDOW = 2.0
PAUSE = 2.0
"""Seconds between two sandboxes, in which a backend may start a guest ahead."""

TARGETS = {'wasm': (3.5, 3.5, 0.25), 'process': (60.0, 15.0, 0.5)}
"""Milliseconds: new sandbox, another one with the same settings, later cell."""

RATES = {'process': 60.0}
"""New sandboxes per second, at least."""

_numbers = itertools.count()


async def measure_backends(*, quick: bool, progress: Progress) -> Report:
    """Measure each backend; one that cannot start has a note instead of a number."""
    load = load_average()
    rounds = 3 if quick else 15
    rows: list[Row] = []
    peers: list[PeerRow] = []
    compared = native_peers()
    for name in names():
        own = MEASURES.get(name)
        measured = await (own(rounds, 50 * rounds, progress) if own else _measure(name, rounds, progress))
        rows += measured
        problem = '' if any(row.value is not None for row in measured) else f'{name} cannot be used here'
        peers += [await _compare(name, peer, rounds, progress, problem) for peer in compared.get(name, [])]
    return make_report(rows, load=load, quick=quick, peers=peers)


async def _measure(name: str, rounds: int, progress: Progress) -> list[Row]:
    progress(f'backend {name}')
    new, again, later = TARGETS.get(name, (None, None, None))
    try:
        await _new(name)
        [fresh] = await interleave(rounds, partial(_new, name))
        await _again(name)
        [ready] = await interleave(rounds, partial(_again, name))
        async with await Sandbox.create(name) as sandbox:
            check(await sandbox.run(CODE))
            [cells] = await interleave(50 * rounds, partial(later_cell, sandbox))
        rate = await _rate(name, rounds)
    except HabilisError as error:
        return [Row(key=f'{name}_new', label=f'{name}: new sandbox + first result', unit='ms', note=str(error))]
    return [
        time_row(f'{name}_new', f'{name}: new sandbox + first result', fresh, new),
        time_row(f'{name}_again', f'{name}: another one with the same settings', ready, again),
        time_row(f'{name}_later', f'{name}: later cell', cells, later),
        *rate,
    ]


async def _rate(name: str, rounds: int) -> list[Row]:
    if name not in RATES:
        return []
    [rates] = await interleave(max(2, rounds // 5), partial(sandboxes_per_second, 2 * cpu_count(), WINDOW, name))
    label, target = f'{name}: new sandboxes per second', Target(bound=RATES[name], sense='at least')
    return [Row(key=f'{name}_rate', label=label, unit='/s', value=rates.median, spread=rates, target=target)]


async def _compare(name: str, peer: Peer, rounds: int, progress: Progress, problem: str) -> PeerRow:
    """A peer and the backend, interleaved, with and without a guest that was started ahead."""
    if reason := peer.unavailable() or problem:
        return PeerRow(peer=peer.name, isolation=peer.isolation, unavailable=reason)
    progress(f'{peer.name} and {name}')
    settings = _settings(name)

    async def ours() -> float:
        return await _first_result(name, settings)

    async def ours_cold() -> float:
        return await _first_result(name, {**settings, 'limits': _new_limits(), 'mounts': {'/data': FOLDER}})

    async def theirs() -> float:
        started = time.perf_counter()
        session = peer.new()
        taken = time.perf_counter() - started
        peer.end(session)
        return taken

    try:
        peer.start()
        first, others, cold = await interleave(rounds, ours, theirs, ours_cold)
        later = await _compare_cells(name, peer, 50 * rounds, settings)
        peer.stop()
    except (PeerError, ImportError, AttributeError, OSError, RuntimeError) as error:  # incompatible or broken
        reason = f'does not work: {type(error).__name__}: {error}'
        return PeerRow(peer=peer.name, isolation=peer.isolation, unavailable=reason)
    return PeerRow(
        peer=f'{peer.name} (and {name})',
        isolation=peer.isolation,
        new=Pair(ours=first, peer=others),
        new_cold=Pair(ours=cold, peer=others),
        later=later,
    )


async def _compare_cells(name: str, peer: Peer, cells: int, settings: SandboxSettings) -> Pair:
    session = peer.new()

    async def theirs() -> float:
        started = time.perf_counter()
        peer.later(session)
        return time.perf_counter() - started

    async with await Sandbox.create(name, **settings) as sandbox:
        check(await sandbox.run(CODE))
        ours, others = await interleave(cells, partial(later_cell, sandbox), theirs)
    peer.end(session)
    return Pair(ours=ours, peer=others)


def _settings(name: str) -> SandboxSettings:
    return {'image': find_docker().image} if name == 'docker' else {}


async def _new(name: str) -> float:
    """With settings that no other sandbox has had."""
    return await _first_result(name, {'limits': _new_limits()})


def _new_limits() -> Limits:
    return Limits(output_bytes=1_000_000 + next(_numbers))


async def _again(name: str) -> float:
    taken = await _first_result(name, {})
    await asyncio.sleep(PAUSE)
    return taken


async def _first_result(name: str, settings: SandboxSettings) -> float:
    started = time.perf_counter()
    async with await Sandbox.create(name, **settings) as sandbox:
        check(await sandbox.run(CODE))
        return time.perf_counter() - started
