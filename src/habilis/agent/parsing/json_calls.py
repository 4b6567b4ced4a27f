"""Calls that a model wrote as text: JSON in the forms that models use, whole, broken or cut off."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from habilis.agent.parsing.blocks import PYTHON_LABELS
from habilis.agent.parsing.syntax import clean, read_literal, reads_as_code

PYTHON_FUNCTIONS = PYTHON_LABELS | {'run_python', 'execute_python', 'python_interpreter', 'code_interpreter'}
CODE_KEYS = ('code', 'python', 'source', 'script')

_NAME_KEYS = ('name', 'tool', 'function', 'action')
_ARGUMENT_KEYS = ('arguments', 'parameters', 'input', 'args', 'action_input', 'tool_input')
_MAX_TRIES = 5
_MAX_DEPTH = 4

_FUNCTION = re.compile(r'\s*<function=([\w.-]+)>')
_PARAMETER = re.compile(r'<parameter=([\w.-]+)>\n?(.*?)(?:\n?</parameter>|\Z)', re.DOTALL)
_NAMED = re.compile(r'"name"\s*:\s*"([\w.-]+)"')
_CODE_STRING = re.compile(
    r'"(?:code|python|source|script)"\s*:\s*"(?P<text>(?:\\.|[^"\\])*+)(?P<end>"|\\?\Z)', re.DOTALL
)
_HALF_ESCAPE = re.compile(r'\\u[0-9a-fA-F]{0,3}\Z')
_OBJECT = re.compile(r'^[ \t]*\{', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A function that the model wants called; for Python, with the code."""

    name: str
    arguments: str
    """JSON."""

    code: str | None = None
    cut: bool = False
    """The text ended before the code did."""


def wanted_in_call(tag: str, body: str) -> Wanted | None:
    """What `<tool_call>` or `<function=name>` asks for."""
    name = tag.partition('=')[2]
    if found := _FUNCTION.match(body):
        name, body = found[1], body[found.end() :]
    if not name:
        return _wanted_by(_read(body)) or _loosely(body)
    given: object = dict(_PARAMETER.findall(body)) or _read(body.partition('</function>')[0])
    return _wanted_by({'name': name, 'arguments': given}) or (_loosely(body) if name in PYTHON_FUNCTIONS else None)


def wanted_in_text(text: str) -> Wanted | None:
    """What a text that is JSON, or has JSON on lines of its own, asks for. JSON that is an answer asks for nothing."""
    if (data := _read(text)) is not None:
        return _wanted_by(data) or _only_code(data)
    decoder = json.JSONDecoder(strict=False)
    for tried, found in enumerate(_OBJECT.finditer(text)):
        if tried == _MAX_TRIES:
            break
        try:
            data = decoder.raw_decode(text, found.end() - 1)[0]
        except (ValueError, RecursionError):
            continue
        if wanted := _wanted_by(data) or _only_code(data):
            return wanted
    return _loosely(text) if text.lstrip().startswith('{') else None


def _wanted_by(data: object, depth: int = 0) -> Wanted | None:
    if not isinstance(data, dict) or depth == _MAX_DEPTH:
        return None
    fields = cast('dict[str, object]', data)
    name = next((fields[key] for key in _NAME_KEYS if key in fields), None)
    if isinstance(name, dict):  # {"type": "function", "function": {"name": ...}}
        return _wanted_by(cast('object', name), depth + 1)
    key = next((key for key in _ARGUMENT_KEYS if key in fields), None)
    if not isinstance(name, str) or key is None:
        return None
    given = fields[key]
    if isinstance(given, str):
        given = _read(given) or given
    if name.lower() in PYTHON_FUNCTIONS:
        return _python(code) if (code := _code_in(given)) is not None else None
    if not isinstance(given, dict):
        return None
    return Wanted(name=name, arguments=json.dumps(given, default=str))


def _code_in(given: object) -> str | None:
    """The code among the arguments of a function that runs Python."""
    if isinstance(given, str):
        return given if given.strip() else None
    if not isinstance(given, Mapping):
        return None
    fields = cast('Mapping[str, object]', given)
    values = [fields[key] for key in CODE_KEYS if key in fields] or list(fields.values())
    return next((value for value in values if isinstance(value, str) and value.strip()), None)


def _only_code(data: object) -> Wanted | None:
    """`{"code": "print(1)"}`, but not `{"code": "US"}`."""
    if not isinstance(data, dict):
        return None
    fields = cast('dict[str, object]', data)
    found = (fields[key] for key in CODE_KEYS if key in fields)
    code = next((value for value in found if isinstance(value, str) and reads_as_code(clean(value))), None)
    return _python(code) if code is not None else None


def _python(code: str, *, cut: bool = False) -> Wanted:
    return Wanted(name='python', arguments=json.dumps({'code': code}), code=code, cut=cut)


def _read(text: str) -> dict[str, object] | None:
    """An object in JSON, or in Python, which models write instead."""
    text = text.strip()
    if not (text.startswith('{') and text.endswith('}')):
        return None
    for read in (_strictly, read_literal):
        try:
            data = read(text)
        except (ValueError, RecursionError):
            continue
        return cast('dict[str, object]', data) if isinstance(data, dict) else None
    return None


def _strictly(text: str) -> object:
    return json.loads(text, strict=False)


def _loosely(text: str) -> Wanted | None:
    """From JSON that is broken or cut off: only the code, and only if it is for Python."""
    named = _NAMED.search(text)
    if named and named[1].lower() not in PYTHON_FUNCTIONS:
        return None
    found = _CODE_STRING.search(text)
    if found is None:
        return None
    whole = found['end'] == '"'
    try:
        code = cast('str', json.loads(f'"{_HALF_ESCAPE.sub("", found["text"])}"', strict=False))
    except ValueError:
        return None
    if whole and not named and not reads_as_code(clean(code)):
        return None
    return _python(code, cut=not whole) if code.strip() else None
