"""Function calls of the model: `python`, which carries code, and the tools that are for the model."""

import asyncio
import json
from collections.abc import Iterator, Sequence

from habilis.agent.context.observation import tool_log
from habilis.agent.context.output import as_text
from habilis.agent.context.prompt import CALL_TOOL, PYTHON, step_tools_message
from habilis.agent.context.truncation import Bounds, truncate
from habilis.core.errors import JournalError
from habilis.core.integers import error_text, integer_text, read_integer
from habilis.core.narrowing import fields_in, is_dict, is_several
from habilis.core.similar_names import similar_names
from habilis.journal import Paused
from habilis.models.contract import Function, FunctionCall
from habilis.sandbox.contract import ToolCall
from habilis.tools import NeedsAnswer, Toolbox
from habilis.tools.attempts import on_thread
from habilis.tools.calls import PreparedCall
from habilis.tools.tool_names import CODE_FUNCTIONS

_LONG_INTEGER = 10_000
"""Bits of an integer that is sent as text: most readers of JSON would refuse the number."""


class ToolCaller:
    """Makes the function calls of one run."""

    def __init__(self, toolbox: Toolbox, *, functions: bool, python: bool, bounds: Bounds) -> None:
        self._toolbox = toolbox
        self._functions = functions
        self._python = python
        self.bounds = bounds

    @property
    def are_functions(self) -> bool:
        """Whether the model calls functions; if not, calls and code are in the text of its replies."""
        return self._functions

    def use_text(self) -> None:
        """Offer no functions from now on."""
        self._functions = False

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions offered to a model that calls functions."""
        if not self._functions:
            return ()
        return (*((PYTHON,) if self._python else ()), *self.model_tools)

    @property
    def model_tools(self) -> tuple[Function, ...]:
        """The tools that are for the model."""
        return (*_offered(self._toolbox), *((CALL_TOOL,) if self._toolbox.unlisted('model') else ()))

    def describe(self, lent: Toolbox) -> str:
        """Text about tools that are there for one step. Functions are offered by the request itself."""
        return step_tools_message(lent.stubs() if self._python else '', () if self._functions else _offered(lent))

    def group(self, calls: Sequence[FunctionCall]) -> Iterator[tuple[str | None, list[FunctionCall]]]:
        """The calls of a reply in groups: each that carries code by itself, those between them together."""
        together: list[FunctionCall] = []
        for call in calls:
            source = self._code_of(call)
            if source is None:
                together.append(call)
                continue
            if together:
                yield None, together
                together = []
            yield source, [call]
        if together:
            yield None, together

    def _code_of(self, call: FunctionCall) -> str | None:
        """The code that a call carries; None for other functions."""
        if not self._python or call.name not in CODE_FUNCTIONS:
            return None
        arguments = _read(call.arguments)
        if is_dict(arguments):
            values = [value for value in arguments.values() if isinstance(value, str)]
            return values[0] if values else None
        return arguments if isinstance(arguments, str) else call.arguments  # the code itself, without JSON around it

    async def call(self, calls: Sequence[FunctionCall]) -> list[str]:
        """Call tools for the model, at the same time. Results and errors become text, in the order of the calls.

        Each has a task of its own: a tool that cancels itself does not cancel the run.
        """
        self._toolbox.open()
        prepared = await on_thread(lambda: [self._prepare(call) for call in calls])
        tasks = [asyncio.ensure_future(self._call(call)) for call in prepared]
        try:
            await asyncio.wait(tasks)
        finally:
            self._toolbox.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        errors = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
        if errors:  # an error that ends the run goes before one that waits for a person
            raise min(errors, key=lambda error: isinstance(error, Paused))
        return ['ToolError: the tool was cancelled' if task.cancelled() else task.result() for task in tasks]

    def _prepare(self, call: FunctionCall) -> PreparedCall | str:
        """A call with its arguments read and validated, or what is wrong with it. Not on the event loop."""
        name, arguments = call.name, _read(call.arguments or '{}')
        names, more = (
            [function.name for function in self.functions or self.model_tools],
            self._toolbox.unlisted('model'),
        )
        if name == CALL_TOOL.name and more and is_dict(arguments):
            inside = arguments.get('arguments', {})
            name, arguments = str(arguments.get('name')), _read(inside) if isinstance(inside, str) else inside
        if name not in more and (name not in names or name == CALL_TOOL.name):
            near = similar_names(name, more, n=3, cutoff=0.7) or similar_names(name, names, n=3, cutoff=0.4) or names
            return f'There is no function {name!r}; there is {", ".join(near) or "none"}.'
        if not is_dict(arguments):
            return f'The arguments of {name} must be a JSON object.'
        return self._toolbox.prepare(name, fields_in(arguments))

    async def _call(self, call: PreparedCall | str) -> str:
        if isinstance(call, str):
            return call
        records: list[ToolCall] = []
        try:
            text = _written(await self._toolbox.make(call, ended=records.append))
        except (JournalError, Paused, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise  # the run must stop
        except NeedsAnswer:
            return 'The user has been asked.'
        except BaseException as error:  # a tool may raise anything; the model is told, the run goes on
            text = (records[0].error if records else None) or error_text(error)
        text, log = truncate(text, self.bounds).text, tool_log(records, self.bounds)
        return f'{text}\n{log}' if log else text


def _offered(toolbox: Toolbox) -> tuple[Function, ...]:
    return tuple(
        Function(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in toolbox.model_functions()
    )


def _written(value: object) -> str:
    """A result as text for the model: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(_as_json(value), default=str, ensure_ascii=False)
    return text.encode('utf-8', 'backslashreplace').decode('utf-8')  # half a pair could not be sent


def _as_json(value: object) -> object:
    """Plain data with the keys and lists that JSON has. A set is sorted: its order would differ in each process."""
    if is_dict(value):
        return {_key(key): _as_json(item) for key, item in value.items()}
    if is_several(value):
        is_set = isinstance(value, (set, frozenset))
        return [_as_json(item) for item in (sorted(value, key=_place) if is_set else value)]
    return _number(value) if isinstance(value, int) else value


def _key(key: object) -> str | int | float:
    if isinstance(key, int):
        return _number(key)
    return key if isinstance(key, (str, float)) else as_text(key)


def _number(value: int) -> int | str:
    return integer_text(value) if value.bit_length() > _LONG_INTEGER else value


def _place(item: object) -> tuple[bool, float, str]:
    """Numbers by their size, then all else by its text."""
    return (False, item, '') if isinstance(item, (int, float)) else (True, 0, as_text(item))


def _read(text: str) -> object:
    try:
        return json.loads(text, strict=False, parse_int=read_integer)
    except (ValueError, RecursionError):
        return None
