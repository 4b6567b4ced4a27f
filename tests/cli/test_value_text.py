"""Values, tool calls and questions as text for people."""

import datetime
from decimal import Decimal

import pytest

from habilis.cli.terminal_user import describe
from habilis.cli.value_text import call_lines, request_lines, value_text
from habilis.core import codec
from habilis.tools import ApprovalRequest


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        ('two\nlines', 'two\nlines'),
        (Decimal('3.50'), '3.50'),
        (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), '2026-01-02 03:04:00+00:00'),
        ({'a': Decimal('3.50')}, "{'a': Decimal('3.50')}"),
        (None, 'None'),
    ],
)
def test_a_value_is_shown_as_a_person_writes_it(value: object, text: str) -> None:
    assert value_text(value) == text


def test_a_call_is_shown_with_its_arguments_diff_and_code() -> None:
    lines = call_lines('send', {'to': 'bob', 'n': 2}, diff='-old\n+new', code='for x in y:\n    send(x)\n')
    assert lines == [
        "send(to='bob', n=2)",
        '-old',
        '+new',
        'called by this code:',
        '  for x in y:',
        '      send(x)',
    ]


def test_a_long_argument_has_a_line_of_its_own_and_says_what_is_left_out() -> None:
    first, text, last, end = call_lines('send', {'text': 'x' * 5000, 'to': 'bob'})
    assert (first, last, end) == ('send(', "  to='bob',", ')')
    assert text.startswith("  text='xxx")
    assert text.endswith('… (3,002 more characters),')


def test_nothing_in_a_call_is_obeyed_by_the_terminal() -> None:
    shown = '\n'.join(call_lines('send\x1b[2J', {'a': '\x1b[2J'}, diff='\x1b[2J', code='\x1b[2J\u202e'))
    assert '\x1b' not in shown
    assert '\u202e' not in shown


def test_a_recorded_question_is_shown_with_its_decoded_details() -> None:
    request: dict[str, codec.Json] = {'question': 'Publish?', 'details': codec.pack({'cost': Decimal('2.50')})}
    assert request_lines(request) == ['cost: 2.50']
    call: dict[str, codec.Json] = {'tool': 'pay', 'arguments': codec.pack({'amount': Decimal('2.50')}), 'diff': ''}
    assert request_lines(call, 'pay(x)') == ["pay(amount=Decimal('2.50'))", 'called by this code:', '  pay(x)']


def test_a_person_at_the_terminal_sees_the_code_that_they_have_not_seen_yet() -> None:
    request = ApprovalRequest(id=1, tool='pay', arguments={'to': 'bob'}, question='May pay be called?')
    call = "\npay(to='bob')\n"
    assert describe(request) == f'{call}May pay be called?'
    assert describe(request, "pay('bob')") == f"{call}called by this code:\n  pay('bob')\nMay pay be called?"
