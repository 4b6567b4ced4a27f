"""Code that writes down what is there already. A small model defines its own `final_answer`, and then nobody hears it;
and it types off the user's data, rarely whole, where it should use the variable."""

import ast
from collections.abc import Collection

from habilis.agent.parsing.syntax import statements

TYPED_OFF = 40
"""A literal of so many characters is data, not a new value."""


def without_shadows(code: str, functions: Collection[str], texts: Collection[str] = ()) -> str:
    """The code without top-level functions of these names, and without long literals assigned to these variables.

    Its lines keep their numbers.
    """
    shadows = [statement for statement in statements(code) or () if _shadows(statement, functions, texts)]
    if not shadows:
        return code
    lines = code.split('\n')
    for shadow in shadows:
        decorators = [decorator.lineno for decorator in getattr(shadow, 'decorator_list', [])]
        for number in range(min([shadow.lineno, *decorators]) - 1, shadow.end_lineno or shadow.lineno):
            lines[number] = ''
    return '\n'.join(lines)


def _shadows(statement: ast.stmt, functions: Collection[str], texts: Collection[str]) -> bool:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in functions
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() as text)):
            return name in texts and len(text) > TYPED_OFF
        case _:
            return False
