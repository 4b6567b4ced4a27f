"""Solves a task again, independently, and compares the answers: agreement tells how far an answer can be trusted.

No effect happens twice: calls of the first solution are answered from its record, and a call that is neither recorded
nor idempotent stops the comparison.
"""

import asyncio
import math
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from habilis.agent.context.output import as_text
from habilis.agent.contract import Agreement
from habilis.agent.loop.sandboxes import Sandboxes
from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.sandbox import Sandbox
from habilis.sandbox.options import SandboxSettings

TEMPERATURE = 0.7
"""Temperature of further solutions: at the same one they would not be independent."""

MAX_WORKSPACE = 100_000_000
"""Maximum number of bytes of a workspace that is copied for a second solution."""


@dataclass(frozen=True, kw_only=True)
class Solution:
    """The outcome of one further solution."""

    output: object = None
    problem: str = ''
    """Why there is no output."""


Solve = Callable[[int], Awaitable[Solution]]
"""Solves the task again; the argument numbers the solution, from 2."""

Escalate = Callable[[], Awaitable[Solution]]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The outcome of a comparison."""

    output: object
    agreement: Agreement
    question: str | None = None
    """For a person, where the answers differ and the caller wants to be asked."""


class Comparison:
    """Compares the answer of a run with further solutions, once."""

    def __init__(
        self, solutions: int, solve: Solve, *, ask: bool = False, escalate: Escalate | None = None, larger: str = ''
    ) -> None:
        self._solutions = solutions
        self._solve = solve
        self._ask = ask
        self._escalate = escalate
        self._larger = larger
        """Name of the model to escalate to."""

        self._agreement: Agreement | None = None

    async def compare(self, output: object) -> Compared:
        """Solve again and compare. After a person was asked, the answer stands as it is."""
        if self._agreement is not None:
            return Compared(output=output, agreement=self._agreement)
        outputs = [output]
        for number in range(2, self._solutions + 1):
            solution = await self._solve(number)
            if solution.problem:
                self._agreement = Agreement(agreed=None, outputs=tuple(outputs), reason=solution.problem)
                return Compared(output=output, agreement=self._agreement)
            outputs.append(solution.output)
        agreed = all(same_answer(output, other) for other in outputs[1:])
        self._agreement = Agreement(agreed=agreed, outputs=tuple(outputs))
        if agreed:
            return Compared(output=output, agreement=self._agreement)
        return await self._resolve(output, self._agreement)

    async def _resolve(self, output: object, agreement: Agreement) -> Compared:
        if self._escalate is not None:
            solution = await self._escalate()
            output = output if solution.problem else solution.output
            decided = '' if solution.problem else self._larger
            self._agreement = Agreement(
                agreed=False, outputs=agreement.outputs, reason=solution.problem, decided_by=decided
            )
            return Compared(output=output, agreement=self._agreement)
        return Compared(output=output, agreement=agreement, question=_question(agreement) if self._ask else None)


def same_answer(one: object, other: object) -> bool:
    """Whether two answers are equal: numbers up to rounding errors, text up to white space around it."""
    if isinstance(one, float) or isinstance(other, float):
        if not isinstance(one, int | float) or not isinstance(other, int | float):
            return False
        try:
            return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
        except OverflowError:  # an integer that no float is close to
            return False
    if isinstance(one, str) and isinstance(other, str):
        return one.strip() == other.strip()
    if type(one) is not type(other):
        return False
    if (is_list(one) and is_list(other)) or (is_tuple(one) and is_tuple(other)):
        return len(one) == len(other) and all(map(same_answer, one, other))
    if is_dict(one) and is_dict(other):
        return one.keys() == other.keys() and all(same_answer(one[key], other[key]) for key in one)
    return one == other


def _question(agreement: Agreement) -> str:
    listed = '; '.join(f'({number}) {as_text(output)}' for number, output in enumerate(agreement.outputs, 1))
    return f'Independent solutions disagree: {listed}. Which is right?'


class StartState:
    """The sandbox of a run as it was before the first step, for further solutions."""

    def __init__(self, problem: str = '') -> None:
        self.problem = problem
        """Why no further solution can be started."""

        self._twin: Sandbox | None = None
        self._workspace: Path | None = None
        self._restore: Callable[[Path | None], Awaitable[Sandbox]] | None = None

    @classmethod
    async def save(
        cls, sandboxes: Sandboxes | None, backend: str | None, settings: SandboxSettings, *, is_resumed: bool
    ) -> 'StartState':
        """Save the state of a sandbox that has its variables and has run nothing yet."""
        if sandboxes is None:
            return cls()
        if sandboxes.others:
            return cls('the run uses several sandboxes, whose state cannot be doubled')
        main, state = sandboxes.main, cls()
        if main.writable_mounts:
            return cls('the sandbox has writable mounts, which a second solution would write to')
        if backend is None:
            if main.has_workspace:
                return cls('the sandbox was passed in with a workspace, which a second solution would write to')
            if is_resumed:
                return cls('the run was resumed in a sandbox that was passed in')
            state._twin = await main.fork()
            return state
        data = bytes(await main.snapshot())
        if main.has_workspace and not settings.get('read_only'):
            state._workspace = Path(tempfile.mkdtemp(prefix='habilis-agree-'))
            root = main.workspace.folder
            if await asyncio.to_thread(_size, root) > MAX_WORKSPACE:
                state.problem = f'the workspace is larger than {MAX_WORKSPACE:,} bytes'
            else:
                await asyncio.to_thread(shutil.copytree, root, state._workspace / 'start', symlinks=True)

        async def restore(workspace: Path | None) -> Sandbox:
            changed = SandboxSettings(**{**settings, 'workspace': workspace}) if workspace else settings  # pyright: ignore[reportArgumentType]
            return await Sandbox.restore(data, backend, **changed)

        state._restore = restore
        return state

    async def open(self, name: str) -> Sandbox | None:
        """A new sandbox in that state; None for an agent without Python."""
        if self._twin is not None:
            return await self._twin.fork()
        if self._restore is None:
            return None
        if self._workspace is None:
            return await self._restore(None)
        folder = self._workspace / name
        await asyncio.to_thread(shutil.copytree, self._workspace / 'start', folder, symlinks=True)
        return await self._restore(folder)

    async def close(self) -> None:
        """Free everything."""
        if self._twin is not None:
            await self._twin.close()
        if self._workspace is not None:
            await asyncio.to_thread(shutil.rmtree, self._workspace, ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob('*') if not path.is_dir())
