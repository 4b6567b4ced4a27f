"""Review of code before it is kept."""

from dataclasses import replace

from habilis.forge.checks.review import review, review_code, verify_reviewed
from habilis.forge.contract import Candidate
from habilis.forge.library.seed_tools import seeds
from tests.cases import each_case
from tests.forge.samples import double, tool


@each_case(
    'body',
    [
        "__builtins__['__import__']('subprocess')",
        "getattr(__builtins__, 'ex' + 'ec')('1')",
        '().__class__.__base__.__subclasses__()',
        'from os import system',
        "import importlib; importlib.import_module('os')",
        "eval('1')",
        "__import__('os')",
        'import subprocess',
        'import ctypes',
        'import pickle; pickle.loads(b"")',
        'import inspect',
        'import sys; sys.modules["test_tool"]',
        'import sys; sys._getframe(1)',
        'from tool import x',
        'import test_tool',
        'globals()',
        'input()',
        'global seen',
    ],
)
def test_code_that_reaches_where_it_has_no_use_is_refused(body: str) -> None:
    assert len(review_code(tool('f', body).code).refused) == 1


@each_case(
    'body',
    [
        "import re; return re.compile('a')",
        'import sys; return sys.maxsize',
        "return df.eval('a')",
        "return '{}'.format(1)",
        "return ','.join(['a'])",
        't.join()',
        "return ord('a')",
        'import math; return math.pi',
        "import base64; return base64.b64decode('aa==')",
        "return bytes.fromhex('00')",
        'return type(number).__name__',
        'return chr(number)',
    ],
)
def test_plain_code_is_not_refused(body: str) -> None:
    assert review_code(tool('f', body).code).refused == ()


@each_case(
    ('body', 'said'),
    [
        ('import random; return random.random()', 'chance'),
        ('from datetime import date; return date.today()', 'clock'),
        ("return open('a').read()", 'files'),
        ('import urllib.request', 'network'),
        ('print(1)', 'prints'),
    ],
)
def test_what_users_should_know_is_noted(body: str, said: str) -> None:
    found = review_code(tool('f', body).code)
    assert found.refused == ()
    assert said in found.noted[0]


def test_the_seeds_are_without_findings_but_for_the_clock() -> None:
    noted = {name: review_code(seed.code) for name, seed in seeds().items()}
    assert {name: found for name, found in noted.items() if found.refused} == {}
    assert {name for name, found in noted.items() if found.noted} <= {'age_in_years'}


async def test_what_is_refused_fails_the_verification_with_the_reason() -> None:
    sorting = Candidate(
        name='largest',
        code='def largest(n: list[int]) -> int:\n    """The largest."""\n    n.sort()\n    return n[-1]\n',
        tests='from tool import largest\n\ndef test_it():\n    assert largest([2, 1]) == 2\n',
    )
    wrong = replace(double(), code='def double(number: int) -> int:\n    """Twice."""\n    return 1\n')
    good, failed, impure = await verify_reviewed([double(), wrong, sorting])
    assert good.ok
    assert failed.report.startswith('test_three: ')
    assert impure.report == 'largest([2, 1]) changes its arguments, to [[1, 2]]: work on a copy'


async def test_code_that_is_refused_at_sight_is_not_run() -> None:
    found = await review(tool('f', 'import subprocess; return 1'))
    assert found.refused == ('line 3: subprocess is refused: it starts or ends processes.',)
