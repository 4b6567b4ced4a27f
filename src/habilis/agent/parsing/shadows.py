"""Code that defines what is there already: a small model writes its own `final_answer`, and then nobody hears it."""

import ast
from collections.abc import Collection

from habilis.agent.parsing.syntax import statements


def without_shadows(code: str, names: Collection[str]) -> str:
    """The code without top-level functions of these names. Its lines keep their numbers."""
    shadows = [
        statement
        for statement in statements(code) or ()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name in names
    ]
    if not shadows:
        return code
    lines = code.split('\n')
    for shadow in shadows:
        first = min([shadow.lineno, *(decorator.lineno for decorator in shadow.decorator_list)])
        for number in range(first - 1, shadow.end_lineno or first):
            lines[number] = ''
    return '\n'.join(lines)
