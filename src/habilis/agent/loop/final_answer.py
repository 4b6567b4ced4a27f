"""`final_answer` as code calls it."""

import functools
import threading
from collections.abc import Callable

from habilis.agent.context.output import OutputType, WrongOutput
from habilis.sandbox.host.functions import HostFunction
from habilis.tools.attempts import on_thread

NAME = 'final_answer'


class FinalAnswer:
    """Takes the first value of the right type as the answer of a run, whatever that value is."""

    def __init__(self, output: OutputType, on_taken: Callable[[], None] = lambda: None) -> None:
        """`on_taken` is called when code has given the answer, on the thread of the sandbox."""
        self.output = output
        self._on_taken = on_taken
        self._lock = threading.Lock()
        self._turn = 0
        self.is_given = False
        self.value: object = None
        self.raw: object = None
        """The value before it was converted to the output type."""

    def __call__(self, *values: object, **named: object) -> None:
        """Take the answer, passed by position or by any name. Raises `WrongOutput`."""
        if len(values) + len(named) != 1:
            msg = 'final_answer takes one value: final_answer(value). Put several into a list or a dict.'
            raise WrongOutput(msg)
        [answer] = (*values, *named.values())
        turn = self._turn
        value = self.output.check(answer)
        with self._lock:
            if self.is_given or turn != self._turn:  # the cell may have been stopped during the check
                return
            self.is_given, self.value, self.raw = True, value, answer
        self._on_taken()

    async def take(self, answer: object) -> None:
        """Make this the answer, from a record. Raises `WrongOutput`."""
        self.value = await on_thread(functools.partial(self.output.check, answer))
        self.is_given, self.raw = True, answer

    async def take_text(self, text: str) -> None:
        """Make a reply in words the answer. Raises `WrongOutput`."""
        self.value = await on_thread(functools.partial(self.output.check_text, text))
        self.is_given = True

    def change(self, value: object) -> None:
        """Replace the answer by what an output validator made of it."""
        self.value = value

    def withdraw(self) -> None:
        """Go on as if no answer had been given."""
        with self._lock:
            self._turn += 1
            self.is_given, self.value, self.raw = False, None, None

    @property
    def function(self) -> HostFunction:
        """The function that the sandbox offers to code."""
        return HostFunction(
            name=NAME,
            call=self,
            is_async=False,
            parameters=('value',),
            signature='(value)',
            doc='Give the answer and end the task.',
            is_reserved=True,
        )
