"""The answer, checked against the type that was asked for."""

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from habilis.agent.context.type_description import describe_type
from habilis.agent.parsing.blocks import find_blocks
from habilis.agent.parsing.syntax import read_literal
from habilis.core.errors import AgentError, ToolDefinitionError
from habilis.core.integers import error_text, read_integer
from habilis.core.previews import shorten
from habilis.tools.validation import MAX_ERRORS, TypeValidator

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_PROBLEMS = 5
SHOWN = 80
"""Max characters of a value shown in messages."""


class WrongOutput(ValueError):
    """The answer is not of the type that was asked for; the message tells the model."""


class OutputType:
    """The type an answer must have; None takes anything."""

    def __init__(self, kind: Any = None) -> None:
        self.kind = kind
        self._shape = None if kind is None else _shape(kind)

    @cached_property
    def name(self) -> str:
        """For the prompt: `int`, `list[str]`, `a dict {'name': str, 'age': int}`."""
        return 'any value' if self.kind is None else describe_type(self.kind)

    def check(self, value: object) -> object:
        """The value as that type. Raises `WrongOutput`.

        What means the same is converted: `'42'` to 42, a list to a set, a dict to a dataclass. Only True and False
        stand for nothing else, and nothing else for them: `'yes'` and 1 may have been meant otherwise.
        """
        return value if self._shape is None else self._checked(self._shape, value)

    def _checked(self, shape: TypeValidator, value: object, *, word: bool = False) -> object:
        from pydantic import ValidationError

        try:
            try:
                return shape.check(value)
            except ValidationError as strict:
                if strict.error_count() > MAX_ERRORS or (not word and _is_about_truth(strict)):
                    raise
                return shape.convert(value)
        except ValidationError as error:
            why = _problems(error)
        except Exception as error:  # a check of the user's own may raise anything
            why = error_text(error)
        msg = f'final_answer needs {self.name}, not {type(value).__name__} {shorten(value, SHOWN)}. {why}'
        raise WrongOutput(msg)

    def check_text(self, text: str) -> object:
        """The same for an answer in words: the text itself, or the value that it writes out."""
        if self._shape is None or self.kind is str:
            return text
        text = text.strip()
        for value in (*_written_values(text), text):
            try:
                return self._checked(self._shape, value, word=value is text)
            except WrongOutput:
                continue
        msg = f'The answer must be {self.name}.'
        raise WrongOutput(msg)


def _written_values(text: str) -> list[object]:
    """What the text may mean as data: all of it, the inside of a fence, or its last line."""
    fences = [block.body for block in find_blocks(text.replace('\r\n', '\n')) if block.kind == 'fence']
    values: list[object] = []
    for candidate in (text, *reversed(fences), text.rsplit('\n', maxsplit=1)[-1]):
        cleaned = candidate.strip().strip('`*').strip()
        for read in (_read_json, read_literal):
            try:
                values.append(read(cleaned))
                break
            except (ValueError, RecursionError):
                continue
    return values


def _read_json(text: str) -> object:
    return json.loads(text, parse_int=read_integer)


def as_text(value: object, form: Callable[[object], str] = str) -> str:
    """A value written out; in short where that is not possible: a number of too many digits, or a class that fails."""
    try:
        return form(value)
    except Exception:  # a `__str__` may do anything
        return shorten(value, SHOWN)


def _problems(error: 'ValidationError') -> str:
    if error.error_count() > MAX_ERRORS:
        return f'It has {error.error_count():,} errors.'
    problems = [
        ': '.join(filter(None, ('.'.join(map(str, problem['loc'])), problem['msg'])))
        for problem in error.errors(include_url=False)[:MAX_PROBLEMS]
    ]
    return '; '.join(problems)


def _is_about_truth(refused: 'ValidationError') -> bool:
    """Whether True or False was given or wanted in place of something else."""
    details = refused.errors(include_url=False, include_context=False)
    return any(detail['type'] == 'bool_type' or isinstance(detail['input'], bool) for detail in details)


def _shape(kind: Any) -> TypeValidator:
    try:
        return TypeValidator(kind, '')
    except ToolDefinitionError as error:
        why = str(error.__cause__).partition('\n')[0]
        msg = f'{kind!r} cannot be an output type; use plain data, a dataclass or a pydantic model. {why}'
        raise AgentError(msg) from error
