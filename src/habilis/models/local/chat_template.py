"""The chat template of the weights: messages to the text of a prompt."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from habilis.core.errors import ModelRefused
from habilis.models.local.backend import ChatTurn

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Used where the weights have no template."""

Render = Callable[[Sequence[ChatTurn]], str]


def compile_template(source: str, *, bos: str, eos: str) -> Render:
    """A function that renders messages. The template comes with the weights, so it runs in Jinja's sandbox."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    # Names that templates of model hubs expect.
    names: dict[str, Any] = {'raise_exception': _refuse, 'strftime_now': _now, 'bos_token': bos, 'eos_token': eos}
    environment.globals.update(names)
    try:
        template = environment.from_string(source or CHATML)
    except TemplateError:  # written for another dialect of Jinja
        template = environment.from_string(CHATML)

    def render(turns: Sequence[ChatTurn]) -> str:
        try:
            return template.render(messages=[dict(turn) for turn in turns], add_generation_prompt=True)
        except Exception as error:  # a template may raise anything
            msg = f"the embedded model's chat template refuses the messages: {error}"
            raise ModelRefused(msg) from error

    return render


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)  # noqa: DTZ005 - the local date, for the reader
