"""Row B14: counts match a reference within a stated error, offline.

The reference counts were made once with the real tokenizer of Qwen2.5. It has a token for each digit, where GPT and
Llama have one for up to three, so the digits are counted in groups of three here. Stated error: 5 % of the sum, 30 % of
each text.
"""

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import TypedDict, cast

from hypothesis import given
from hypothesis import strategies as st

from habilis.models.contract import FunctionCall, Message
from habilis.models.tokens import TOKENS_PER_MESSAGE, count_message_tokens, count_tokens
from tests.cases import each_case


class Reference(TypedDict):
    name: str
    tokens: int
    text: str


def _load() -> list[Reference]:
    path = Path(__file__).with_name('token_reference.json')
    texts = cast('dict[str, list[Reference]]', json.loads(path.read_text(encoding='utf-8')))['texts']
    return [{**item, 'tokens': item['tokens'] - _saved(item['text'])} for item in texts]


def _saved(text: str) -> int:
    """Tokens less if up to three digits are one."""
    return sum(len(number) - math.ceil(len(number) / 3) for number in re.findall('[0-9]+', text))


REFERENCE = _load()
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_the_reference_is_worth_the_name() -> None:
    assert len(REFERENCE) >= 30
    assert sum(item['tokens'] for item in REFERENCE) > 5000


@each_case('item', REFERENCE)
def test_each_text_is_counted_within_thirty_percent(item: Reference) -> None:
    assert abs(count_tokens(item['text']) - item['tokens']) <= 0.30 * item['tokens']


def test_all_texts_together_are_counted_within_five_percent() -> None:
    real = sum(item['tokens'] for item in REFERENCE)
    assert abs(sum(count_tokens(item['text']) for item in REFERENCE) - real) <= 0.05 * real


def test_nearly_all_texts_are_counted_within_a_fifth() -> None:
    far = [item['name'] for item in REFERENCE if abs(count_tokens(item['text']) / item['tokens'] - 1) > 0.2]
    assert len(far) <= len(REFERENCE) // 10, far


def test_nothing_is_no_token() -> None:
    assert count_tokens('') == 0
    assert count_message_tokens([]) == 0


@given(ANY_TEXT)
def test_any_text_has_a_count_between_one_and_four_tokens_a_character(text: str) -> None:
    assert (1 if text else 0) <= count_tokens(text) <= 4 * len(text)


@given(ANY_TEXT, ANY_TEXT)
def test_a_longer_text_has_about_the_tokens_of_its_parts(first: str, second: str) -> None:
    parts = count_tokens(first) + count_tokens(second)
    whole = count_tokens(first + second)
    slack = 4 + 0.5 * parts
    assert abs(whole - parts) <= slack


@given(ANY_TEXT, ANY_TEXT)
def test_more_text_is_never_much_fewer_tokens(first: str, second: str) -> None:
    assert count_tokens(first + second) >= 0.6 * count_tokens(first) - 4


@each_case('unit', ['word ', '漢字', '🎉', '12', ' \n', '-', 'aB', '\ud800', "'s", '\t', 'é'])
def test_a_text_repeated_grows_with_its_length(unit: str) -> None:
    counts = [count_tokens(unit * times) for times in (0, 10, 1000, 100_000)]
    assert all(few < many for few, many in pairwise(counts))


def test_messages_cost_their_texts_their_calls_and_the_template() -> None:
    call = FunctionCall(id='1', name='python', arguments='{"code": "print(1)"}')
    talk = [Message(role='user', text='Count to one.'), Message(role='assistant', calls=(call,), thinking='never sent')]
    expected = 3 * TOKENS_PER_MESSAGE + sum(map(count_tokens, ['Count to one.', call.name, call.arguments]))
    assert count_message_tokens(talk) == expected
