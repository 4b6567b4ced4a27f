"""Parses function calls that a model wrote as text: JSON in the forms that models use, even broken or truncated."""

import json
import re
from dataclasses import dataclass

from habilis.agent.parsing.blocks import PYTHON_LABELS
from habilis.agent.parsing.syntax import is_code, read_literal, unframe
from habilis.core.narrowing import fields_in, is_dict, is_mapping

PYTHON_FUNCTIONS = PYTHON_LABELS | {'run_python', 'execute_python', 'python_interpreter', 'code_interpreter'}
CODE_KEYS = ('code', 'python', 'source', 'script')

_NAME_KEYS = ('name', 'tool', 'function', 'action')
_ARGUMENT_KEYS = ('arguments', 'parameters', 'input', 'args', 'action_input', 'tool_input')
_MAX_TRIES = 5
_MAX_DEPTH = 4

_FUNCTION = re.compile(r'\s*<function=([\w.-]+)>')
_PARAMETER = re.compile(r'<parameter=([\w.-]+)>\n?(.*?)(?:\n?</parameter>|\Z)', re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([\w.-]+)"')
_CODE_STRING = re.compile(
    r'"(?:code|python|source|script)"\s*:\s*"(?P<text>(?:\\.|[^"\\])*+)(?P<end>"|\\?\Z)', re.DOTALL
)
_INCOMPLETE_ESCAPE = re.compile(r'\\u[0-9a-fA-F]{0,3}\Z')
_OBJECT = re.compile(r'^[ \t]*\{', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class TextCall:
    """A function call in the text of a reply."""

    name: str
    arguments: str
    """JSON."""

    code: str | None = None
    """The code, if the function runs Python."""

    is_truncated: bool = False
    """Whether the text ended inside the code."""


def parse_call_tag(tag: str, body: str) -> TextCall | None:
    """The call in a tag such as `<tool_call>` or `<function=name>`."""
    name = tag.partition('=')[2]
    if found := _FUNCTION.match(body):
        name, body = found[1], body[found.end() :]
    if not name:
        return _call_from(_read_object(body)) or _call_from_broken_json(body)
    given: object = dict(_PARAMETER.findall(body)) or _read_object(body.partition('</function>')[0])
    call = _call_from({'name': name, 'arguments': given})
    return _call_from_broken_json(body) if call is None and name in PYTHON_FUNCTIONS else call


def parse_call_json(text: str) -> TextCall | None:
    """The call in a text that is JSON, or has JSON on its own lines. None if the JSON is an answer."""
    if (data := _read_object(text)) is not None:
        return _call_from(data) or _call_from_code_field(data)
    decoder = json.JSONDecoder(strict=False)
    for tried, found in enumerate(_OBJECT.finditer(text)):
        if tried == _MAX_TRIES:
            break
        try:
            data = decoder.raw_decode(text, found.end() - 1)[0]
        except (ValueError, RecursionError):
            continue
        if call := _call_from(data) or _call_from_code_field(data):
            return call
    return _call_from_broken_json(text) if text.lstrip().startswith('{') else None


def _call_from(data: object, depth: int = 0) -> TextCall | None:
    if not is_dict(data) or depth == _MAX_DEPTH:
        return None
    fields = data
    name = next((fields[key] for key in _NAME_KEYS if key in fields), None)
    if is_dict(name):  # {"type": "function", "function": {"name": ...}}
        return _call_from(name, depth + 1)
    key = next((key for key in _ARGUMENT_KEYS if key in fields), None)
    if not isinstance(name, str) or key is None:
        return None
    given = fields[key]
    if isinstance(given, str):
        given = _read_object(given) or given
    if name.lower() in PYTHON_FUNCTIONS:
        return _python_call(code) if (code := _code_of(given)) is not None else None
    if not isinstance(given, dict):
        return None
    return TextCall(name=name, arguments=json.dumps(given, default=str))


def _code_of(given: object) -> str | None:
    """The code in the arguments of a function that runs Python."""
    if isinstance(given, str):
        return given if given.strip() else None
    if not is_mapping(given):
        return None
    values = [given[key] for key in CODE_KEYS if key in given] or list(given.values())
    return next((value for value in values if isinstance(value, str) and value.strip()), None)


def _call_from_code_field(data: object) -> TextCall | None:
    """The call in `{"code": "print(1)"}`. None for `{"code": "US"}`."""
    fields = fields_in(data)
    found = (fields[key] for key in CODE_KEYS if key in fields)
    code = next((value for value in found if isinstance(value, str) and is_code(unframe(value))), None)
    return _python_call(code) if code is not None else None


def _python_call(code: str, *, is_truncated: bool = False) -> TextCall:
    return TextCall(name='python', arguments=json.dumps({'code': code}), code=code, is_truncated=is_truncated)


def _read_object(text: str) -> dict[str, object] | None:
    """An object in JSON, or a dict in Python, which models write instead."""
    text = text.strip()
    if not (text.startswith('{') and text.endswith('}')):
        return None
    for read in (_read_json, read_literal):
        try:
            data = read(text)
        except (ValueError, RecursionError):
            continue
        return fields_in(data) if is_dict(data) else None
    return None


def _read_json(text: str) -> object:
    return json.loads(text, strict=False)


def _call_from_broken_json(text: str) -> TextCall | None:
    """A call of Python in JSON that is broken or truncated."""
    named = _NAME.search(text)
    if named and named[1].lower() not in PYTHON_FUNCTIONS:
        return None
    found = _CODE_STRING.search(text)
    if found is None:
        return None
    whole = found['end'] == '"'
    try:
        code: str = json.loads(f'"{_INCOMPLETE_ESCAPE.sub("", found["text"])}"', strict=False)
    except ValueError:
        return None
    if whole and not named and not is_code(unframe(code)):
        return None
    return _python_call(code, is_truncated=not whole) if code.strip() else None
