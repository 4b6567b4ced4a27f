"""All measurements of `python -m benchmarks forge`."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.forge import candidates
from benchmarks.forge.large_library import LargeLibrary, prompt_tokens, search_times
from benchmarks.installation import PeerError
from benchmarks.measurement import interleave, load_average, summarize
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from benchmarks.sandbox.timings import settle

TOOLS, MORE_TOOLS = 10_000, 100_000


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Number of repeats."""

    verifications: int
    batches: int
    searches: int
    has_more_tools: bool


FULL = Effort(verifications=30, batches=5, searches=20, has_more_tools=True)
QUICK = Effort(verifications=2, batches=1, searches=2, has_more_tools=False)


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes a minute or two; some seconds if quick."""
    effort = QUICK if quick else FULL
    load = load_average()
    progress('a first verification')
    await candidates.verify_one()  # builds the component if there is none
    rows = [*await _verification(effort, progress), *await _batches(effort, progress)]
    rows += await _large_library(effort, progress)
    return make_report(rows, load=load, quick=quick)


async def _verification(effort: Effort, progress: Progress) -> list[Row]:
    """One candidate in our sandbox and in each peer, interleaved."""
    progress('verification')
    reasons = {peer.key: await _unavailable(peer) for peer in candidates.PEERS}
    present = [peer for peer in candidates.PEERS if not reasons[peer.key]]
    ours, *others = await interleave(effort.verifications, _verify, *(peer.run for peer in present))
    times = dict(zip([peer.key for peer in present], others, strict=True))
    rows = [time_row('verify', 'verification of a candidate: 10 tests, fresh sandbox', ours, 60.0)]
    for peer in candidates.PEERS:
        key, label = f'verify_{peer.key}', f'the same tests with {peer.label}'
        if reason := reasons[peer.key]:
            rows.append(Row(key=key, label=label, unit='ms', note=reason))
            continue
        ratio = ours.median / times[peer.key].median
        rows.append(time_row(key, label, times[peer.key]))
        rows.append(Row(key=f'verify_by_{peer.key}', label=f'our verification ÷ {peer.key}', unit='×', value=ratio))
    return rows


async def _verify() -> float:
    taken = await candidates.verify_one()
    await settle()
    return taken


async def _unavailable(peer: candidates.TestPeer) -> str:
    """Why a peer cannot be measured; empty if one run works."""
    if reason := peer.unavailable():
        return reason
    try:
        await peer.run()
    except (PeerError, OSError) as error:
        return f'does not work: {error}'
    return ''


async def _batches(effort: Effort, progress: Progress) -> list[Row]:
    progress(f'{candidates.CANDIDATES} candidates and {candidates.MUTANTS} mutants')
    many, mutants = await interleave(effort.batches, candidates.verify_many, candidates.check_mutants)
    progress('the seed library')
    seeds = await candidates.retest_seeds(effort.batches)
    retested = f'tests of the whole seed library ({seeds.tools} tools)'
    return [
        time_row('candidates', f'{candidates.CANDIDATES} candidates verified', many, 4.0, unit='s'),
        time_row('mutants', f'{candidates.MUTANTS} mutants checked', mutants, 3.0, unit='s'),
        time_row('seeds', retested, summarize(seeds.seconds), 5.0, unit='s'),
    ]


async def _large_library(effort: Effort, progress: Progress) -> list[Row]:
    progress(f'a library of {TOOLS:,} tools')
    with tempfile.TemporaryDirectory(prefix='habilis-', ignore_cleanup_errors=True) as folder:
        library = LargeLibrary(Path(folder) / 'tools')
        library.fill(TOOLS)
        few = summarize(search_times(library, effort.searches))
        tokens = await prompt_tokens(library)
        more = Row(key='search_more', label=f'search among {MORE_TOOLS:,} tools', unit='ms', note='not in a quick run')
        if effort.has_more_tools:
            progress(f'a library of {MORE_TOOLS:,} tools')
            library.fill(MORE_TOOLS)
            more = time_row(more.key, more.label, summarize(search_times(library, effort.searches)), 20.0)
    bound = Target(bound=600)
    label = f'tokens that {TOOLS:,} tools add to the prompt of an agent'
    return [
        time_row('search', f'search among {TOOLS:,} tools', few, 5.0),
        more,
        Row(key='prompt', label=label, unit=' tokens', value=tokens, target=bound),
    ]
