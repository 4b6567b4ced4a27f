"""A look at generated code before it is kept: for tidiness. The sandbox is what protects the host."""

import ast

_FORBIDDEN = frozenset({'eval', 'exec', 'compile', '__import__', 'globals', 'locals', 'vars', 'breakpoint', 'input'})
_INSPECTING = frozenset({'inspect', 'gc', 'ctypes', 'importlib', 'subprocess', 'sys', 'traceback', 'builtins', 'tool'})
"""Modules that a plain function has no use for, and that could look at its tests."""


def review(code: str) -> str:
    """What is wrong with the code of a tool; empty if nothing is."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if bad := [one.name for one in names if one.name.split('.')[0] in _INSPECTING]:
                return f'the code imports {bad[0]}, which a tool has no use for'
            case ast.ImportFrom(module=str() as module) if module.split('.')[0] in _INSPECTING:
                return f'the code imports {module}, which a tool has no use for'
            case ast.Name(id=name) if name in _FORBIDDEN:
                return f'the code uses {name}, which a tool has no use for'
            case ast.Attribute(attr=name) if name.startswith('__') and name.endswith('__') and name != '__name__':
                return f'the code uses {name}, which a tool has no use for'
            case ast.Global():
                return 'the code changes global variables: a second call would give another result'
            case _:
                continue
    return ''
