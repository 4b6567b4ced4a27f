"""Compare files of outcomes: `python -m evals.compare MINE.jsonl OTHER.jsonl …`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from evals import outcomes, scores
from evals.outcomes import Outcome

Solved = Mapping[tuple[str, str], bool]
"""By set and task."""


def compare(mine: str, sides: Mapping[str, Sequence[Outcome]]) -> str:
    """A table of all sides, then the tasks that only one of `mine` and each other side solves."""
    parts = [scores.table(sides)]
    parts += [_differences(mine, sides[mine], side, done) for side, done in sides.items() if side != mine]
    return '\n\n'.join(parts)


def _differences(mine: str, my_outcomes: Sequence[Outcome], other: str, other_outcomes: Sequence[Outcome]) -> str:
    first, second = _solved(my_outcomes), _solved(other_outcomes)
    common = [task for task in first if task in second]
    lost = [name for name in common if second[name] and not first[name]]
    won = [name for name in common if first[name] and not second[name]]
    both = sum(first[name] and second[name] for name in common)
    return '\n'.join(
        [
            f'{mine} and {other}: {len(common)} tasks in common, {both} solved by both',
            f'  losses, solved by {other} only: {_names(lost)}',
            f'  gains, solved by {mine} only: {_names(won)}',
        ]
    )


def _solved(done: Sequence[Outcome]) -> Solved:
    return {(one.set, one.task): one.solved for one in done}


def _names(tasks: Sequence[tuple[str, str]]) -> str:
    return f'{len(tasks)}: {", ".join(task for _, task in tasks)}' if tasks else 'none'


def main() -> None:
    """For `python -m evals.compare`."""
    parser = argparse.ArgumentParser(prog='python -m evals.compare', description='Rates, losses and gains.')
    parser.add_argument('mine', type=Path, metavar='MINE', help='outcomes that losses are counted for')
    parser.add_argument('others', type=Path, nargs='+', metavar='OTHER', help='outcomes of other sides or versions')
    arguments = parser.parse_args()
    paths: list[Path] = [arguments.mine, *arguments.others]
    if missing := [str(path) for path in paths if not path.exists()]:
        parser.error(f'no such file: {missing[0]}')
    if len({path.stem for path in paths}) < len(paths):
        parser.error('the files need different names: they are the names of the sides')
    print(compare(paths[0].stem, {path.stem: outcomes.read(path) for path in paths}))


if __name__ == '__main__':
    main()
