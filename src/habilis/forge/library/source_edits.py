"""Changes source of tools and tests in place: what they import, and tests of two tools as one module."""

import ast
import io
import tokenize
from collections.abc import Callable, Container, Mapping

from habilis.core.syntax import parse_module
from habilis.forge.contract import TESTED_MODULE


def import_as_tool(tests: str, module: str) -> str:
    """Tests that import their function from the file it was written in, as tests that import it from `tool`."""

    def change(node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            if node.module == module and node.level <= 1:
                node.module, node.level = TESTED_MODULE, 0
            return
        for alias in node.names:
            if alias.name == module:
                alias.name, alias.asname = TESTED_MODULE, alias.asname or module

    return _with_imports(tests, change)


def import_instead(code: str, module: str, old: str, new: str) -> str:
    """Code that imports another function of the module, under the name that it used before."""

    def change(node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            for alias in node.names:
                if alias.name == old:
                    alias.name, alias.asname = new, alias.asname or old

    return _with_imports(code, change)


def tests_instead(tests: str, old: str, new: str) -> str:
    """Tests of one tool as tests of another."""
    if any(token.string == new for token in _names_in(tests)):
        return import_instead(tests, TESTED_MODULE, old, new)
    return renamed_in(tests, {old: new})


def joined_tests(first: str, second: str) -> str:
    """One module with the tests of both. What both define alike is there once; other equal names get a number."""
    known, tests = _definitions(first), _test_shapes(first)
    more = {name: node for name, node in _definitions(second).items() if _shape(node) not in tests}
    taken = {*known, *more}
    renamed: dict[str, str] = {}
    for name, node in more.items():
        if name in known and ast.dump(known[name]) != ast.dump(node):
            renamed[name] = free_name(name, taken)
            taken.add(renamed[name])
    second = renamed_in(second, renamed)
    imported = {ast.unparse(node) for node in parse_module(first).body if _is_import(node)}
    imports, rest, end = list[str](), list[str](), 0
    lines = _lines(second)
    for node in parse_module(second).body:
        text, end = ''.join(lines[end : node.end_lineno]), node.end_lineno or end
        if _is_import(node):
            if (statement := ast.unparse(node)) not in imported:
                imports.append(statement)
        elif not _is_docstring(node) and not _is_known(node, known) and _shape(node) not in tests:
            rest.append(text.strip('\n'))
    head = ''.join(f'{statement}\n' for statement in dict.fromkeys(imports))
    return f'{_after_docstring(first, head)}\n\n\n' + '\n\n\n'.join(rest) + '\n' if rest else first


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with a number if it is taken."""
    free, number = name, 2
    while free in taken:
        free, number = f'{name}_{number}', number + 1
    return free


def renamed_in(source: str, names: Mapping[str, str]) -> str:
    """The source with other identifiers; text, comments and attributes stay."""
    lines = _lines(source)
    for token in reversed(_names_in(source)):
        if token.string in names:
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = f'{line[:start]}{names[token.string]}{line[end:]}'
    return ''.join(lines)


# Inside ---------------------------------------------------------------------------------------------------------------


def _with_imports(source: str, change: Callable[[ast.Import | ast.ImportFrom], None]) -> str:
    """The source with changed import statements; all else stays as it was written."""
    lines = source.encode().splitlines(keepends=True)
    nodes = [node for node in ast.walk(parse_module(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(nodes, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        before = ast.unparse(node)
        change(node)
        if (after := ast.unparse(node)) != before:
            last = (node.end_lineno or node.lineno) - 1
            start, end = lines[node.lineno - 1][: node.col_offset], lines[last][node.end_col_offset :]
            lines[node.lineno - 1 : last + 1] = [start + after.encode() + end]
    return b''.join(lines).decode()


def _definitions(tests: str) -> dict[str, ast.stmt]:
    """What a module defines itself, by name."""
    found: dict[str, ast.stmt] = {}
    for node in parse_module(tests).body:
        for name in _names(node):
            found[name] = node
    return found


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if _is_import(node):
        return []
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_known(node: ast.stmt, known: Mapping[str, ast.stmt]) -> bool:
    names = _names(node)
    return bool(names) and all(name in known and ast.dump(known[name]) == ast.dump(node) for name in names)


def _test_shapes(tests: str) -> set[str]:
    """The tests of a module without their names."""
    return {_shape(node) for node in parse_module(tests).body} - {''}


def _shape(node: ast.stmt) -> str:
    if not isinstance(node, ast.FunctionDef) or not node.name.startswith('test'):
        return ''
    return ast.dump(ast.FunctionDef('_', node.args, node.body, node.decorator_list, node.returns))


def _lines(source: str) -> list[str]:
    """Lines as Python counts them: a separator of lines inside a text does not end one."""
    return io.StringIO(source).readlines()


def _names_in(source: str) -> list[tokenize.TokenInfo]:
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    pairs = zip([None, *tokens], tokens, strict=False)
    return [one for before, one in pairs if one.type == tokenize.NAME and (before is None or before.string != '.')]


def _after_docstring(source: str, head: str) -> str:
    """The source with more imports, after the docstring and the imports it has."""
    source = source.rstrip('\n')
    before = [node.end_lineno or 0 for node in parse_module(source).body if _is_import(node) or _is_docstring(node)]
    lines = _lines(source)
    at = max(before, default=0)
    return ''.join([*lines[:at], head, *lines[at:]])
