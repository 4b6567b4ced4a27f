"""The answer, checked against the type that was asked for."""

import json
import re
from functools import cached_property
from typing import Any, cast

from habilis.agent.describe import describe_type
from habilis.agent.parsing.blocks import find_blocks
from habilis.agent.parsing.syntax import read_literal
from habilis.core.errors import AgentError
from habilis.tools.typed_dicts import modern

MAX_PROBLEMS = 5
_NUMBER_REFUSED = re.compile(r'final_answer needs \w+, not (?:int|float) (-?\d+(?:\.\d+)?)\. ')


class WrongOutput(ValueError):
    """The answer is not of the type that was asked for; the message tells the model."""


class OutputType:
    """The type an answer must have; None takes anything."""

    def __init__(self, kind: Any = None) -> None:
        self.kind = kind
        self._adapter: Any = None if kind is None else _adapter(kind)

    @cached_property
    def name(self) -> str:
        """For the prompt: `int`, `list[str]`, `a dict {'name': str, 'age': int}`."""
        return 'any value' if self.kind is None else describe_type(self.kind)

    @cached_property
    def takes_none(self) -> bool:
        """Whether None is an answer of this type."""
        if self.kind is None:
            return False
        try:
            self.check(None)
        except WrongOutput:
            return False
        return True

    def check(self, value: object) -> object:
        """The value as that type. Raises `WrongOutput`."""
        if self.kind is None:
            return value
        from pydantic import ValidationError

        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            problems = [
                f'{".".join(str(part) for part in problem["loc"]) or "the answer"}: {problem["msg"]}'
                for problem in error.errors(include_url=False)[:MAX_PROBLEMS]
            ]
            msg = f'final_answer needs {self.name}, not {_shown(value)}. {"; ".join(problems)}'
            raise WrongOutput(msg) from None

    def check_text(self, text: str) -> object:
        """The same for an answer in words: the text itself, or the value that it writes out."""
        if self.kind is None or self.kind is str:
            return text
        for value in _written_values(text):
            try:
                return self.check(value)
            except WrongOutput:
                continue
        msg = f'The answer must be {self.name}. Call final_answer(...) with that value in a Python block.'
        raise WrongOutput(msg)


def converted(refusal: str, value: object) -> str | None:
    """The number that `refusal`, a message of `WrongOutput`, was about, if `value` is nothing but that number as a text
    or without its fraction: of the right type, and the wrong thing."""
    found = _NUMBER_REFUSED.search(refusal)
    if found is None or isinstance(value, bool):
        return None
    same = value == found[1] if isinstance(value, str) else isinstance(value, int) and value == int(float(found[1]))
    return found[1] if same else None


def literal(text: str) -> object:
    """What a printed text stands for: the number, list, … that it writes out, or the text."""
    text = text.strip()
    try:
        return read_literal(text)
    except ValueError:
        return text


def _written_values(text: str) -> list[object]:
    """What the text may mean as data: all of it, the inside of a fence, or its last line; or the words themselves."""
    text = text.strip()
    fences = [block.body for block in find_blocks(text.replace('\r\n', '\n')) if block.kind == 'fence']
    values: list[object] = []
    for candidate in (text, *reversed(fences), text.split('\n')[-1]):
        cleaned = candidate.strip().strip('`*').strip()
        for read in (json.loads, read_literal):
            try:
                values.append(read(cleaned))
                break
            except (ValueError, RecursionError):
                continue
    return [*values, text]


def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter  # only where a type was asked for
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(cast('Any', modern(kind)))
    except PydanticUserError as error:
        why = str(error).partition('\n')[0]
        msg = f'{kind!r} cannot be an output type; use plain data, a dataclass or a pydantic model. {why}'
        raise AgentError(msg) from error


def _shown(value: object) -> str:
    text = repr(value)
    return f'{type(value).__name__} {text if len(text) <= 80 else text[:80] + "…"}'
