"""`python -m evals.agreement`: bugs that tests do not notice, and whether generated inputs show them."""

import argparse
import json
from pathlib import Path

from evals.agreement import evaluate, seed_bugs
from habilis.forge.checks.verification import verify

HEAD = 'def size(text: str) -> int:\n    """Length of a text."""\n    return '
BUGS = [
    {'name': 'size', 'right': f'{HEAD}len(text)', 'wrong': HEAD + wrong, 'tests': ["size('a') == 1"]}
    for wrong in ('len(text.strip())', "len(text) - ('zqz' in text)")
]


async def test_bugs_of_a_folder_are_found_or_named(tmp_path: Path) -> None:
    (tmp_path / 'bugs.jsonl').write_text(''.join(f'{json.dumps(bug)}\n' for bug in BUGS), encoding='utf-8')
    said: list[str] = []
    await evaluate(argparse.Namespace(data=tmp_path, limit=None), said.append)
    assert said == [
        'missed size',
        '1 of 2 bugs that the tests do not notice are found: 0 near the tests, others by types',
    ]


async def test_bugs_of_the_tools_pass_the_tests_that_are_left() -> None:
    bugs = [bug async for bug in seed_bugs(2)]
    assert bugs
    for bug in bugs:
        assert (await verify(bug.right)).ok
        assert (await verify(bug.wrong)).ok
        assert bug.right.code != bug.wrong.code
