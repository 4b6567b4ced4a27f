"""Names of variables that are passed to code."""

import keyword
import unicodedata
from collections.abc import Container, Iterable, Mapping

from habilis.agent.loop.final_answer import NAME as FINAL_ANSWER
from habilis.core.errors import AgentError

ARTIFACTS = 'artifacts'
_RESERVED: Mapping[str, str] = {
    FINAL_ANSWER: 'code gives its answer with it',
    ARTIFACTS: 'the documents of a step are there',
    'print': 'code shows its results with it',
}


def check_variables(names: Iterable[object], tools: Container[str]) -> None:
    """Refuse names that code cannot use, or that would hide what it needs. Raises `AgentError`."""
    for name in names:
        if reason := _objection(name, tools):
            msg = f'{name!r} cannot be the name of a variable: {reason}; choose another'
            raise AgentError(msg)


def _objection(name: object, tools: Container[str]) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        return 'it is not a Python name (letters, digits and underscores)'
    if keyword.iskeyword(name):
        return 'it is a keyword of Python'
    if unicodedata.normalize('NFKC', name) != name:
        return 'Python normalizes it to another name'
    if name.startswith('__') and name.endswith('__'):
        return 'Python reserves such names'
    return 'a tool has that name' if name in tools else _RESERVED.get(name, '')
