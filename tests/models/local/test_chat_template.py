"""Messages to the text of a prompt, by the template that comes with the weights."""

import pytest

from habilis.core.errors import ModelRefused
from habilis.models.local.backend import ChatTurn
from habilis.models.local.chat_template import compile_template

TURNS = [ChatTurn(role='system', content='Be brief.'), ChatTurn(role='user', content='Hi')]


def test_without_a_template_it_is_chatml() -> None:
    for source in ('', '{% broken'):
        assert compile_template(source, bos='', eos='')(TURNS) == (
            '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n'
        )


def test_a_template_has_the_names_that_hubs_promise() -> None:
    source = (
        '{{ bos_token }}{% for message in messages %}{% if loop.first %}{% continue %}{% endif %}'
        "{{ message['content'] | trim }}{{ eos_token }}{% endfor %}{{ strftime_now('%%') }}"
        '{% if add_generation_prompt %}>{% endif %}'
    )
    assert compile_template(source, bos='<s>', eos='</s>')(TURNS) == '<s>Hi</s>%>'


def test_a_refusal_of_the_template_is_reported() -> None:
    render = compile_template("{{ raise_exception('no system messages') }}", bos='', eos='')
    with pytest.raises(ModelRefused, match='refuses the messages: no system messages'):
        render(TURNS)


def test_a_template_cannot_reach_python() -> None:
    render = compile_template("{{ ''.__class__.__mro__[1].__subclasses__() }}", bos='', eos='')
    with pytest.raises(ModelRefused):
        render(TURNS)
