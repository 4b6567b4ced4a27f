"""What the forge reads from replies, and where it stops a model on this machine."""

import pytest

from habilis.core.errors import ModelUnavailable
from habilis.forge.build.requests import StageConversation, code_block
from habilis.models import ScriptedModel
from habilis.models.contract import Delta, Message, Options, Reply, Traits
from habilis.models.counting import CountingModel
from habilis.models.usage import Ledger
from habilis.models.wrapper import WrapperModel
from tests.cases import each_case

BLOCK = '```python\ndef area(a, b):\n    return a * b\n```\n'


class StreamedModel(WrapperModel):
    """Streams its replies line by line, and remembers how much of them was read."""

    def __init__(self, replies: list[str], *, local: bool = True) -> None:
        super().__init__(ScriptedModel(replies))
        self.written = ''
        self._traits = Traits(local=local)

    @property
    def traits(self) -> Traits:
        """Of a model on this machine, or elsewhere."""
        return self._traits

    async def stream(self, messages: object, options: object = None):
        """One line at a time."""
        reply = (await self.inner.request([Message(role='user', text='go')], Options())).text
        for line in reply.splitlines(keepends=True):
            self.written += line
            yield Delta(text=line)
        yield Reply(text=reply, model=self.name)


async def test_a_local_model_is_stopped_after_its_code_block() -> None:
    model = StreamedModel([f'Here:\n{BLOCK}It multiplies.\nAnd so on.\n'])
    assert code_block(await StageConversation(model, 'spec').say('area')) == 'def area(a, b):\n    return a * b'
    assert model.written == f'Here:\n{BLOCK}'


async def test_a_hosted_model_is_read_to_its_end() -> None:
    reply = f'First:\n{BLOCK}Better:\n```python\nx = 1\n```\n'
    assert code_block(await StageConversation(StreamedModel([reply], local=False), 'spec').say('area')) == 'x = 1'


async def test_the_tokens_of_a_reply_that_was_stopped_are_counted() -> None:
    ledger = Ledger()
    model = CountingModel(StreamedModel([BLOCK * 50]), ledger.record)
    await StageConversation(model, 'spec').say('area')
    assert ledger.total.requests == 1
    assert 10 <= ledger.total.output_tokens <= 40


@each_case(
    ('reply', 'code'),
    [
        (BLOCK, 'def area(a, b):\n    return a * b'),
        ('x = 1', 'x = 1'),
        ('No code here.', ''),
        ('```python\nx = 1\n\ndef f():\n    y = 2\n    return (y', 'x = 1\n\ndef f():\n    y = 2'),
        ('```python\nx = 1\ny = 2', 'x = 1'),
        ('```python\ndef f():\n    return 1', ''),
        ('```python\nx = (\n1,\n2', ''),
    ],
)
def test_code_is_read_from_a_reply_and_incomplete_lines_are_dropped(reply: str, code: str) -> None:
    assert code_block(reply) == code


async def test_a_request_that_fails_is_not_counted_and_a_whole_reply_once() -> None:
    ledger = Ledger()
    model = CountingModel(ScriptedModel([ModelUnavailable('down'), 'Whole.']), ledger.record)
    with pytest.raises(ModelUnavailable):
        await StageConversation(model, 'spec').say('area')
    assert ledger.total.requests == 0
    assert await StageConversation(model, 'spec').say('area') == 'Whole.'
    assert ledger.total.requests == 1
