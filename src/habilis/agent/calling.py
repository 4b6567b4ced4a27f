"""Functions the model calls itself: `python`, which carries code, and the tools that are for the model."""

import json
from difflib import get_close_matches
from typing import cast

from habilis.agent.cut import Bounds, cut
from habilis.agent.prompt import PYTHON
from habilis.core.errors import JournalError
from habilis.models.contract import Function, FunctionCall
from habilis.tools import NeedsAnswer, Toolbox
from habilis.tools.names import CODE_FUNCTIONS


class Caller:
    """Answers the function calls of one run."""

    def __init__(self, toolbox: Toolbox, *, functions: bool, python: bool, bounds: Bounds) -> None:
        self._toolbox = toolbox
        self._functions = functions
        self._python = python
        self.bounds = bounds

    @property
    def functions(self) -> tuple[Function, ...]:
        """What is offered to a model that calls functions."""
        if not self._functions:
            return ()
        return (*((PYTHON,) if self._python else ()), *self.model_tools)

    @property
    def model_tools(self) -> tuple[Function, ...]:
        """The tools that are for the model."""
        return tuple(
            Function(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in self._toolbox.model_functions()
        )

    def code_of(self, call: FunctionCall) -> str | None:
        """The code that a call carries; None if it is another function's."""
        if call.name not in CODE_FUNCTIONS:
            return None
        arguments = _read(call.arguments)
        if isinstance(arguments, dict):
            values = [value for value in cast('dict[str, object]', arguments).values() if isinstance(value, str)]
            return values[0] if values else None
        return arguments if isinstance(arguments, str) else call.arguments  # the code itself, without JSON around it

    async def call(self, call: FunctionCall) -> str:
        """Call a tool for the model; whatever happens becomes text for it."""
        names = [function.name for function in self.functions or self.model_tools]
        if call.name not in names:
            near = get_close_matches(call.name, names, n=3, cutoff=0.4) or names
            return f'There is no function {call.name!r}; there is {", ".join(near) or "none"}.'
        arguments = _read(call.arguments or '{}')
        if not isinstance(arguments, dict):
            return f'The arguments of {call.name} must be a JSON object.'
        try:
            value = await self._toolbox.call_for_model(call.name, cast('dict[str, object]', arguments))
        except JournalError:
            raise  # what cannot be recorded must not go on
        except NeedsAnswer:
            return 'The user has been asked.'
        except Exception as error:  # a tool may raise anything; the model is told, the run goes on
            return f'{type(error).__name__}: {error}'
        return cut(value if isinstance(value, str) else json.dumps(value, default=str), self.bounds).text


def _read(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
