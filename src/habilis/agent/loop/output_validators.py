"""Output validators: functions of the user that accept, change or refuse an answer of the right type.

Their outcome is recorded: a replay does not call them again.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from habilis.agent.context.output import OutputType, WrongOutput
from habilis.agent.durable.recorder import Recorder
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.core.codec import Json
from habilis.core.errors import AgentError, ModelRetry
from habilis.core.integers import error_text
from habilis.core.narrowing import json_object
from habilis.journal import Codec
from habilis.tools import Context, Toolbox
from habilis.tools.attempts import call, on_thread
from habilis.tools.context import with_context

OutputValidator = Callable[..., object]
"""A function of the answer, or of the `Context` and the answer, with `def` or `async def`. Returns the answer, changed
or not, or raises `ModelRetry`."""


@dataclass(frozen=True, kw_only=True)
class Validated:
    """What the validators made of an answer."""

    output: object = None
    refused: str = ''
    """Why the answer is refused, for the model; empty if it is accepted."""


class OutputValidators:
    """The validators of one run, called one after the other."""

    def __init__(
        self,
        functions: Sequence[OutputValidator],
        *,
        output: OutputType,
        toolbox: Toolbox,
        events: Dispatcher,
        recorder: Recorder | None,
    ) -> None:
        self._functions = functions
        self._output = output
        self._toolbox = toolbox
        self._events = events
        self._recorder = recorder

    async def check(self, output: object) -> Validated:
        """Accept, change or refuse an answer. A replay returns what was recorded, even with other validators."""
        recorder = self._recorder
        if not self._functions and not (recorder is not None and recorder.was_validated):
            return Validated(output=output)
        if recorder is None:
            return await self._check(output)
        live: list[Validated] = []
        codec = Codec[object](self._output.kind, what='the output of an agent')

        async def work() -> Json:
            live.append(validated := await self._check(output))
            if validated.refused:
                return {'refused': validated.refused}
            return {'output': await on_thread(functools.partial(codec.write, validated.output))}

        written = json_object(await recorder.validated(work))
        if live:
            return live[0]
        if 'output' not in written:
            return Validated(refused=str(written.get('refused')))
        return Validated(output=await on_thread(functools.partial(codec.read, written['output'])))

    async def _check(self, output: object) -> Validated:
        self._events.go_live()
        context = self._toolbox.context or Context(None)
        for function in self._functions:
            try:
                output = await self._output_of(function, context, output)
            except ModelRetry as retry:
                return Validated(refused=str(retry) or 'it did not pass a check')
        return Validated(output=output)

    async def _output_of(self, function: OutputValidator, context: Context[object], output: object) -> object:
        name = getattr(function, '__name__', type(function).__name__)
        try:
            changed = await call(with_context(function, context, output))
        except ModelRetry:
            raise
        except Exception as error:
            msg = f'the output validator {name} failed: {error_text(error)}'
            raise AgentError(msg) from error
        if changed is output:
            return output
        if changed is None and self._output.kind is None:
            msg = f'the output validator {name} returned None: return the answer, changed or not'
            raise AgentError(msg)
        try:
            return await on_thread(functools.partial(self._output.check, changed))
        except WrongOutput:
            msg = f'the output validator {name} returned {type(changed).__name__}, not {self._output.name}'
            raise AgentError(msg) from None
