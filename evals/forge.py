"""Let the forge build tools: `python -m evals.forge --data FOLDER`. Tests that nobody was shown judge what was kept.

The request is the text of an MBPP task with its first test as the user's example. What matters is precision: of the
tools that were kept, how many are right. A wrong tool in a library is worse than none.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from habilis.forge.build import Forge, Options
from habilis.forge.examples import called_name, example_tests
from habilis.forge.library import Library
from habilis.forge.verification import verify
from habilis.models import Model, load_model
from habilis.models.contract import Message, Reply
from habilis.models.contract import Options as RequestOptions
from habilis.models.wrapper import WrapperModel


@dataclass(frozen=True, kw_only=True)
class BuildOutcome:
    """One task."""

    task: int
    status: str
    right: bool | None
    """Whether the tool passes the tests that were kept back; None if there is no tool."""

    reason: str
    seconds: float
    tokens: int


class Counting(WrapperModel):
    """Counts the tokens of all requests."""

    tokens = 0

    async def request(self, messages: Sequence[Message], options: RequestOptions = RequestOptions()) -> Reply:  # noqa: B008
        """Ask, and count."""
        reply = await self.inner.request(messages, options)
        self.tokens += reply.usage.tokens
        return reply


async def build_one(row: dict[str, object], model: Model, options: Options) -> BuildOutcome:
    """Build a tool for a task in a library of its own, and judge it."""
    counting, started = Counting(model), time.monotonic()
    text, setup, tests = str(row['text']), str(row.get('setup') or ''), [str(test) for test in row['tests']]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]
    with tempfile.TemporaryDirectory() as folder:
        library = Library(folder)
        forge = Forge(library, counting, options=options)
        built = await forge.build(text, tests[:1], journal=f'{folder}/runs.db')
        right = None
        if built.name:
            kept = library.candidate(built.name)
            hidden = f'from tool import {called_name(tests) or built.name}\n{setup}\n{example_tests(tests[1:])}'
            right = (await verify(replace(kept, tests=hidden))).ok
    return BuildOutcome(
        task=int(str(row['task_id'])),
        status=built.status,
        right=right,
        reason=built.reason,
        seconds=round(time.monotonic() - started, 1),
        tokens=counting.tokens,
    )


def summary(outcomes: Sequence[BuildOutcome]) -> str:
    """The figures in words."""
    kept = [one for one in outcomes if one.right is not None]
    right = sum(one.right is True for one in kept)
    precision = f'{100 * right / len(kept):.0f} %' if kept else 'no tool was kept'
    seconds = sum(one.seconds for one in outcomes) / len(outcomes)
    tokens = sum(one.tokens for one in outcomes) / len(outcomes)
    return (
        f'{len(outcomes)} requests: {len(kept)} tools kept, {right} of them right (precision {precision}), '
        f'{len(outcomes) - len(kept)} refused; {seconds:.0f} s and {tokens:.0f} tokens a build'
    )


async def main() -> None:
    """Build, judge, print."""
    parser = argparse.ArgumentParser(prog='python -m evals.forge', description=__doc__)
    parser.add_argument('--data', type=Path, required=True, help='folder with mbpp*.jsonl')
    parser.add_argument('--model', default='local:')
    parser.add_argument('--limit', type=int, default=None)
    parser.add_argument('--offset', type=int, default=0)
    parser.add_argument('--candidates', type=int, default=3)
    parser.add_argument('--no-red-check', action='store_true', help='without stub, mutants and agreement')
    parser.add_argument('--results', type=Path, default=None, help='file for one JSON line a task')
    given = parser.parse_args()
    [file, *_] = sorted(given.data.glob('mbpp*.jsonl'))
    rows = [json.loads(line) for line in file.read_text('utf-8').splitlines()][given.offset :][: given.limit]
    strict = not given.no_red_check
    options = Options(candidates=given.candidates, red_check=strict, agreement=strict)
    model, outcomes = load_model(given.model), list[BuildOutcome]()
    for row in rows:
        outcomes.append(await build_one(row, model, options))
        print(json.dumps(asdict(outcomes[-1])), flush=True)
        if given.results is not None:
            with given.results.open('a', encoding='utf-8') as out:
                out.write(f'{json.dumps(asdict(outcomes[-1]))}\n')
    print(summary(outcomes))
    await model.close()


if __name__ == '__main__':
    asyncio.run(main())
