"""Source of tools and tests is changed in place."""

from habilis.forge.library.source_edits import import_as_tool, import_instead, joined_tests
from tests.cases import each_case


@each_case(
    ('written', 'expected'),
    [
        ('from slug import slug', 'from tool import slug'),
        ('from .slug import slug as s  # why', 'from tool import slug as s  # why'),
        ('import slug', 'import tool as slug'),
        ('import re, slug as s; x = 1', 'import re, tool as s; x = 1'),
        ('def f():\n    from slug import (\n        slug,\n    )\n', 'def f():\n    from tool import slug\n'),
        ("text = 'from slug import slug'", "text = 'from slug import slug'"),
        ('é = 1; import slug; ü = 2', 'é = 1; import tool as slug; ü = 2'),
        ('from other import slug', 'from other import slug'),
    ],
)
def test_tests_import_the_function_from_tool(written: str, expected: str) -> None:
    assert import_as_tool(written, 'slug') == expected


def test_another_tool_is_imported_under_the_old_name() -> None:
    code = 'from library import a, old  # both\nfrom other import old\n\nold()\n'
    changed = 'from library import a, new as old  # both\nfrom other import old\n\nold()\n'
    assert import_instead(code, 'library', 'old', 'new') == changed
    assert import_instead('from library import old as o', 'library', 'old', 'new') == 'from library import new as o'


FIRST = '''"""Tests."""

from tool import f

LIMIT = 1


def same() -> int:
    return 1


def test_a() -> None:
    assert f(1) == LIMIT  # LIMIT
'''
SECOND = """import math
from tool import f

LIMIT = 2


def same() -> int:
    return 1


# about a
def test_a() -> None:
    assert f(same()) == LIMIT, 'LIMIT'


def test_b() -> None:
    assert f(math.inf) == 1
"""
JOINED = '''"""Tests."""

from tool import f
import math

LIMIT = 1


def same() -> int:
    return 1


def test_a() -> None:
    assert f(1) == LIMIT  # LIMIT


LIMIT_2 = 2


# about a
def test_a_2() -> None:
    assert f(same()) == LIMIT_2, 'LIMIT'


def test_b() -> None:
    assert f(math.inf) == 1
'''


def test_tests_of_two_modules_are_joined() -> None:
    assert joined_tests(FIRST, SECOND) == JOINED
    assert joined_tests(FIRST, FIRST) == FIRST
    odd = "def test_odd() -> None:\n    assert '\u2028' != '\x0c'\n\n\nLIMIT = 3\n"
    assert joined_tests(FIRST, odd) == f'{FIRST}\n\n{odd.replace("LIMIT", "LIMIT_2")}'
