"""A class name has one meaning in the package."""

import ast
from collections import defaultdict
from pathlib import Path

from habilis.core.syntax import parse_module
from tests.house.repository import PACKAGE

EXCEPTIONS = {
    'CodeRules': 'guest/optional_rules.py has a stand-in for Python 3.9, which cannot run the checks',
    'CodeRulesError': 'as CodeRules',
    '_Machine': 'each cloud has its own `CloudMachine`',
}
"""Names of two or more classes, and why. A name that is no longer one of these is removed here."""


def repeated_names(package: Path) -> dict[str, list[str]]:
    """The modules of each class name that is defined more than once."""
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob('*.py')):
        module = path.relative_to(package)
        for node in ast.walk(parse_module(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(module.as_posix())
    return {name: found for name, found in modules.items() if len(found) > 1}


def test_a_class_name_has_one_meaning() -> None:
    found = repeated_names(PACKAGE)
    assert {name: modules for name, modules in found.items() if name not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) - set(found) == set()


def test_a_name_of_two_classes_is_found(tmp_path: Path) -> None:
    for name in ('a', 'b'):
        (tmp_path / f'{name}.py').write_text('class Entry:\n    class Key: ...\n', encoding='utf-8')
    assert repeated_names(tmp_path) == {'Entry': ['a.py', 'b.py'], 'Key': ['a.py', 'b.py']}
