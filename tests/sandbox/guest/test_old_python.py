"""The guest runs on Python 3.9, for images that have no later one."""

import ast

from habilis.sandbox.host.guest_folder import GUEST_FILES, PACKAGE
from tests.cases import each_case

FIRST_PROCESS = 'sandbox/docker/first_process.py'
NEWER = ('code_rules.py', 'code_analysis.py', 'import_gate.py')
"""Imported by Python 3.10 and later only; see `policies.py`."""


@each_case('name', [*GUEST_FILES, FIRST_PROCESS])
def test_the_guest_has_the_syntax_of_its_oldest_python(name: str) -> None:
    is_newer = name.endswith(NEWER)
    tree = ast.parse(PACKAGE.joinpath(name).read_text(), feature_version=(3, 10) if is_newer else (3, 9))
    if not is_newer:
        assert not _unions(tree), 'Python 3.9 evaluates X | Y: use Union, a tuple, or annotations of __future__'


def _unions(tree: ast.Module) -> list[str]:
    """Unions of types that are evaluated."""
    postponed = any(isinstance(node, ast.ImportFrom) and node.module == '__future__' for node in tree.body)
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and 'version_info' in ast.dump(node.test):
            for inner in ast.walk(node):
                inner.__dict__['is_guarded'] = True
    for node in ast.walk(tree):
        if hasattr(node, 'is_guarded'):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'isinstance':
            found.append(node.args[1])
        elif isinstance(node, ast.arguments) and not postponed:
            every = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
            found += [argument.annotation for argument in every if argument and argument.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns and not postponed:
            found.append(node.returns)
    found += [node.value for node in tree.body if isinstance(node, ast.Assign)]
    return [ast.unparse(part) for whole in found for part in ast.walk(whole) if _is_union(part)]


def _is_union(node: ast.AST) -> bool:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return False
    types = {'str', 'bytes', 'int', 'float', 'bool', 'list', 'tuple', 'dict', 'set', 'frozenset'}
    return any(
        (isinstance(part, ast.Constant) and part.value is None) or (isinstance(part, ast.Name) and part.id in types)
        for part in ast.walk(node)
    )
