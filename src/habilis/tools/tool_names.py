"""Validates names of tools: a name must be an identifier, and must not hide builtins or modules."""

import builtins
import keyword
import sys
import unicodedata

from habilis.core.errors import ToolDefinitionError
from habilis.sandbox.contract import Side

RESERVED = frozenset({'final_answer', 'stop_execution', 'artifacts', 'tools', 'display'})
"""Names that the agent and the sandbox define for code."""

CODE_FUNCTIONS = ('python', 'run_python', 'execute_python', 'code_interpreter')
"""Function names that models use to run code: such a call is never a call of a tool."""


def check_name(name: str, side: Side = 'code') -> str:
    """The name, if it is valid for a tool of this side. Raises `ToolDefinitionError`."""
    reason = _problem(name)
    if not reason and side != 'code' and name in CODE_FUNCTIONS:
        reason = 'models use it to run code'
    if reason:
        msg = f'{name!r} cannot be the name of a tool: {reason}; choose another with @tool(name=…)'
        raise ToolDefinitionError(msg)
    return name


def _problem(name: str) -> str:
    if name == '<lambda>':
        return 'a lambda has no name of its own'
    if not name.isidentifier():
        return 'it is not a Python identifier (letters, digits and underscores)'
    if keyword.iskeyword(name):
        return 'it is a Python keyword'
    if name in RESERVED:
        return 'the agent uses it'
    if hasattr(builtins, name) or name.startswith('__'):
        return f'it would hide {name}, which Python itself uses'
    if name in sys.stdlib_module_names:
        return f'it would hide the module {name} of the standard library'
    if unicodedata.normalize('NFKC', name) != name:
        return 'Python normalizes it to another name (NFKC), so code could not call it'
    return ''
