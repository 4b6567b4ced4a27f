"""Real-looking replies, and exactly the code that is in them (row A2)."""

import pytest

from habilis.agent.parsing.replies import code_is_complete, parse_reply
from tests.agent.parsing.examples import EXAMPLES, Example
from tests.cases import each_case

with_code = [example for example in EXAMPLES if example.form not in ('none', 'calls')]
without_code = [example for example in EXAMPLES if example.form == 'none']
with_calls = [example for example in EXAMPLES if example.form == 'calls']


def name_of(example: Example) -> str:
    return example.name


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(with_code) >= 70
    assert len(without_code) >= 30
    assert len({example.reply for example in EXAMPLES}) == len(EXAMPLES)


@each_case('example', with_code)
def test_exactly_the_code_is_found(example: Example) -> None:
    found = parse_reply(example.reply)
    assert found.code == example.expected
    assert found.form == example.form
    assert found.truncated == example.truncated
    assert found.calls == ()


@each_case('example', without_code)
def test_a_reply_without_code_has_none(example: Example) -> None:
    found = parse_reply(example.reply)
    assert (found.code, found.calls, found.form) == (None, (), 'none')


@pytest.mark.parametrize('example', with_calls, ids=name_of)
def test_functions_called_in_the_text_are_found(example: Example) -> None:
    found = parse_reply(example.reply)
    assert found.code is None
    assert '\n'.join(f'{call.name} {call.arguments}' for call in found.calls) == example.expected
    assert len({call.id for call in found.calls}) == len(found.calls)


@each_case('example', EXAMPLES)
def test_every_beginning_of_a_reply_can_be_read_while_it_is_written(example: Example) -> None:
    complete = False
    for end in range(len(example.reply) + 1):
        beginning = example.reply[:end]
        found = parse_reply(beginning)
        assert found.code is None or found.code.strip()
        now = code_is_complete(beginning)
        if now and not complete:
            assert beginning.endswith('\n')
            assert found.code is not None
            assert not found.truncated
        complete = now
