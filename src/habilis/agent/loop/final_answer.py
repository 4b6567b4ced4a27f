"""`final_answer` as code calls it."""

from habilis.agent.context.output import OutputType, WrongOutput
from habilis.sandbox.functions import HostFunction

NAME = 'final_answer'


class FinalAnswer:
    """Takes the first value of the right type as the answer of a run, whatever that value is."""

    def __init__(self, output: OutputType) -> None:
        self.output = output
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
        if self.is_given:
            self.output.check(answer)
        else:
            self.take(answer)

    def take(self, answer: object) -> None:
        """Make this the answer. Raises `WrongOutput`."""
        self.value = self.output.check(answer)
        self.is_given, self.raw = True, answer

    def take_text(self, text: str) -> None:
        """Make a reply in words the answer. Raises `WrongOutput`."""
        self.value = self.output.check_text(text)
        self.is_given = True

    def withdraw(self) -> None:
        """Go on as if no answer had been given."""
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
        )
