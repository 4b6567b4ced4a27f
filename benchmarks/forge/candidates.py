"""Times of the tests of candidates: in our sandboxes, and in processes without isolation."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fresh_process import last_line
from benchmarks.installation import PeerError, why_missing
from habilis.core.errors import ForgeError
from habilis.forge.checks.mutation import mutation_score
from habilis.forge.checks.verification import verify, verify_all
from habilis.forge.contract import Candidate
from habilis.forge.library.library import CODE, TESTS, Library
from habilis.forge.library.retests import retest
from habilis.forge.library.seed_tools import seed, seeds

SAMPLE = 'parse_date'
"""The seed that is verified: it has ten tests, and more than fifty mutants."""

CANDIDATES = 100
MUTANTS = 50

PLAIN = """
import test_tool
for name, test in list(vars(test_tool).items()):
    if name.startswith('test_'):
        test()
print('passed')
"""
"""The tests in a plain process, as short as it gets."""


def sample() -> Candidate:
    """The candidate that is verified."""
    return seeds()[SAMPLE]


async def verify_one() -> float:
    """Seconds for the tests of one candidate, in a fresh sandbox."""
    started = time.perf_counter()
    result = await verify(sample())
    taken = time.perf_counter() - started
    if not result.ok:
        raise ForgeError(f'the tests of the seed {SAMPLE} fail: {result.report}')
    return taken


async def verify_many() -> float:
    """Seconds for the tests of many candidates, each in a fresh sandbox."""
    started = time.perf_counter()
    results = await verify_all([sample()] * CANDIDATES)
    taken = time.perf_counter() - started
    if failed := [result for result in results if not result.ok]:
        raise ForgeError(f'{len(failed)} of {CANDIDATES} verifications failed: {failed[0].report}')
    return taken


async def check_mutants() -> float:
    """Seconds to check the wrong variants of a candidate."""
    started = time.perf_counter()
    score = await mutation_score(sample(), seconds=0.05, limit=MUTANTS)
    taken = time.perf_counter() - started
    if score.total != MUTANTS:
        raise ForgeError(f'the seed {SAMPLE} has {score.total} mutants, and {MUTANTS} are to be checked')
    return taken


@dataclass(frozen=True, kw_only=True)
class SeedTimes:
    """Repeated tests of the seed library."""

    tools: int
    seconds: Sequence[float]


async def retest_seeds(repeats: int) -> SeedTimes:
    """Seconds for the tests of all seeds."""
    with tempfile.TemporaryDirectory(prefix='habilis-') as folder:
        library = Library(folder)
        await seed(library)
        names, times = library.names(), list[float]()
        for _ in range(repeats):
            started = time.perf_counter()
            results = await retest(library, names)
            times.append(time.perf_counter() - started)
            if failed := [result for result in results if not result.verification.ok]:
                raise ForgeError(f'the seed {failed[0].name} fails: {failed[0].verification.report}')
    return SeedTimes(tools=len(names), seconds=times)


@dataclass(frozen=True, kw_only=True)
class TestPeer:
    """Another way to run the same tests."""

    __test__ = False  # not a test of pytest

    key: str
    label: str
    command: tuple[str, ...]
    expected: str
    """What it prints if all tests pass."""

    distribution: str = ''

    def unavailable(self) -> str:
        """Why it cannot be measured; empty if it can."""
        return (why_missing(self.distribution) or '') if self.distribution else ''

    async def run(self) -> float:
        """Seconds for the tests in a new process. Raises `PeerError` if they do not pass."""
        with tempfile.TemporaryDirectory(prefix='habilis-') as folder:
            for name, text in ((CODE, sample().code), (TESTS, sample().tests)):
                (Path(folder) / name).write_text(text, encoding='utf-8')
            return await asyncio.to_thread(self._run, folder)

    def _run(self, folder: str) -> float:
        environment = {**os.environ, 'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1'}  # as fast as pytest can be
        command = [sys.executable, *self.command]
        started = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        taken = time.perf_counter() - started
        if done.returncode != 0 or self.expected not in done.stdout:
            raise PeerError(last_line(done.stderr or done.stdout))
        return taken


PEERS = (
    TestPeer(key='python', label='`python -c`, no isolation', command=('-c', PLAIN), expected='passed'),
    TestPeer(
        key='pytest',
        label='`pytest` in a process, no isolation',
        command=('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--rootdir=.', TESTS),
        expected=' passed',
        distribution='pytest',
    ),
)
