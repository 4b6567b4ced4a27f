"""Which names a tool may have. Code calls it by that name, so it must be one, and must not hide what code relies on."""

import builtins
import keyword
import sys
import unicodedata

from habilis.core.errors import ToolDefinitionError
from habilis.sandbox.contract import Side

RESERVED = frozenset({'final_answer', 'stop_execution', 'artifacts'})
"""Names that the agent itself puts into the sandbox."""

CODE_FUNCTIONS = ('python', 'run_python', 'execute_python', 'code_interpreter')
"""What models call to have code run: a call by one of these names carries code, and reaches no tool."""


def check_name(name: str, side: Side = 'code') -> str:
    """The name, if a tool for this side may have it. Raises `ToolDefinitionError` saying why not."""
    reason = _objection(name)
    if not reason and side != 'code' and name in CODE_FUNCTIONS:
        reason = 'a model that calls it wants code to be run'
    if reason:
        msg = f'{name!r} cannot be the name of a tool: {reason}; choose another with @tool(name=…)'
        raise ToolDefinitionError(msg)
    return name


def _objection(name: str) -> str:
    if name == '<lambda>':
        return 'a lambda has no name of its own'
    if not name.isidentifier():
        return 'it is not a Python name (letters, digits and underscores)'
    if keyword.iskeyword(name):
        return 'it is a keyword of Python'
    if name in RESERVED:
        return 'the agent uses it'
    if hasattr(builtins, name) or name.startswith('__'):
        return f'it would hide what Python itself calls {name}'
    if name in sys.stdlib_module_names:
        return f'it would hide the module {name} of the standard library'
    if unicodedata.normalize('NFKC', name) != name:
        return 'Python reads its letters as others, so code could not call it'
    return ''
