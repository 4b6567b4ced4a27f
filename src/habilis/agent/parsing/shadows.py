"""Code that writes down what is there already. A small model defines its own `final_answer`, and then nobody hears it;
it imports its tools from modules that it makes up; and it types off the user's data, rarely whole, where it should use
the variable."""

import ast
import sys
from collections.abc import Collection

from habilis.agent.parsing.syntax import statements

TYPED_OFF = 40
"""A literal of so many characters is data, not a new value."""


def without_shadows(code: str, functions: Collection[str], texts: Collection[str] = ()) -> str:
    """The code without top-level functions of these names, and without long literals assigned to these variables.

    Imports of the functions go too, unless the module is one of the standard library. Lines keep their numbers.
    """
    body = statements(code) or []
    shadows = [statement for statement in body if _shadows(statement, functions, texts)]
    if not shadows:
        return code
    kept = {number for statement in body if statement not in shadows for number in _lines(statement)}
    lines = code.split('\n')
    for shadow in shadows:
        if kept.isdisjoint(_lines(shadow)):  # else it shares a line with something else
            for number in _lines(shadow):
                lines[number - 1] = ''
            lines[shadow.lineno - 1] = _other_names(shadow)
    return '\n'.join(lines)


def _lines(statement: ast.stmt) -> range:
    decorators = [decorator.lineno for decorator in getattr(statement, 'decorator_list', [])]
    return range(min([statement.lineno, *decorators]), (statement.end_lineno or statement.lineno) + 1)


def _other_names(statement: ast.stmt) -> str:
    """What an import calls the functions, if not by their names."""
    aliases = statement.names if isinstance(statement, ast.ImportFrom) else []
    return '; '.join(f'{alias.asname} = {alias.name}' for alias in aliases if alias.asname not in (None, alias.name))


def _shadows(statement: ast.stmt, functions: Collection[str], texts: Collection[str]) -> bool:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in functions
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name in functions
        case ast.ImportFrom(module=str() as module, names=names):
            return not _is_standard(module) and all(alias.name in functions for alias in names)
        case ast.Import(names=[ast.alias(name=name, asname=None)]):
            return name in functions and not _is_standard(name)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() as text)):
            return name in texts and len(text) > TYPED_OFF
        case _:
            return False


def _is_standard(module: str) -> bool:
    return module.partition('.')[0] in sys.stdlib_module_names
