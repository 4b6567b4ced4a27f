"""Imports that code forgot are found, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.parsing.imports import MODULES, NAMES, missing_imports
from tests.cases import each_case


@each_case(
    ('code', 'expected'),
    [
        ('math.sqrt(2)', ['import math']),
        ('import math\nmath.sqrt(2)', []),
        ('import math as m\nm.sqrt(2) + math.pi', ['import math']),
        ('rows = list(csv.DictReader(io.StringIO(text)))', ['import csv', 'import io']),
        ('Counter("abc")', ['from collections import Counter']),
        ('from collections import Counter\nCounter("abc")', []),
        ('datetime.date(2024, 1, 1)', ['import datetime']),
        ('datetime.now()', []),
        ('from datetime import datetime\ndatetime.date', []),
        ('def f(string):\n    return string.upper()', []),
        ('for time in []:\n    time.hour', []),
        ('class Path: ...\nPath()', []),
        ('print("math.sqrt")', []),
        ('json', []),
        ('with open("x") as io:\n    io.read()', []),
        ('this is not Python (', []),
        ('', []),
    ],
)
def test_missing_imports_are_found(code: str, expected: list[str]) -> None:
    assert missing_imports(code, ()) == expected


def test_a_variable_of_that_name_is_not_a_module() -> None:
    assert missing_imports('string.upper() + re.sub("a", "b", "c")', ['string']) == ['import re']


@given(st.text())
def test_any_text_is_accepted(code: str) -> None:
    assert missing_imports(code, ()) is not None


def test_every_import_it_may_add_exists() -> None:
    for module in MODULES:
        exec(f'import {module}', {})
    for name, module in NAMES.items():
        exec(f'from {module} import {name}', {})
