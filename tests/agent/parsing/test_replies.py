"""Whatever code a model writes, in whatever wrapping, comes out as it was written; and no text is too much."""

import ast
import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.parsing.replies import code_is_complete, parse_reply
from tests.agent.parsing.programs import programs

labels = st.sampled_from(
    ['python', 'py', 'Python', 'PYTHON3', '{python}', '{.python}', 'python title="a"', ' python ', 'a.py']
)
before = st.sampled_from(['', 'Here it is:\n', 'I will do this.\n\n', '1. First\n\n', '# Plan\n- a\n- b\n\n'])
after = st.sampled_from(['', '\n', '\n\nThat is all.', '\nOutput:\n```\n42\n```', '\n\n```json\n{"a": 1}\n```\n'])
indents = st.sampled_from(['', '  ', '    ', '\t'])
line_ends = st.sampled_from(['\n', '\r\n'])


def mark_for(code: str, sign: str) -> str:
    """A mark that no line of the code begins with."""
    return sign * (3 if not any(line.lstrip().startswith(sign * 3) for line in code.split('\n')) else 4)


@given(programs, labels, before, after, st.sampled_from('`~'), line_ends)
def test_code_in_a_fence_comes_out_as_it_was_written(
    code: str, label: str, before: str, after: str, sign: str, end: str
) -> None:
    mark = mark_for(code, sign)
    reply = f'{before}{mark}{label}\n{code}\n{mark}{after}'
    found = parse_reply(reply.replace('\n', end))
    assert (found.code, found.form, found.truncated) == (code, 'fence', False)
    assert before.strip() in found.prose


@given(programs, before, indents)
def test_an_indented_fence_gives_code_without_the_indentation(code: str, before: str, indent: str) -> None:
    mark = mark_for(code, '`')
    reply = before + textwrap.indent(f'{mark}python\n{code}\n{mark}', indent, lambda _: True)
    assert parse_reply(reply).code == code


@given(programs)
def test_a_quoted_fence_gives_code_without_the_quotation_marks(code: str) -> None:
    mark = mark_for(code, '`')
    reply = textwrap.indent(f'{mark}python\n{code}\n{mark}', '> ', lambda _: True)
    assert parse_reply(reply).code == code


@given(programs)
def test_fences_inside_the_strings_of_the_code_do_not_end_it(code: str) -> None:
    assert parse_reply(f'Look:\n```python\n{code}\n```\nDone.').code == code


@given(programs.filter(lambda code: '<' not in code), st.sampled_from(['code', 'python', 'execute', 'tool_code']))
def test_code_in_a_tag_comes_out_as_it_was_written(code: str, tag: str) -> None:
    found = parse_reply(f'I will do this.\n<{tag}>\n{code}\n</{tag}>\n')
    assert (found.code, found.form) == (code, 'tag')


@given(programs, st.booleans())
def test_code_in_a_written_call_comes_out_as_it_was_written(code: str, readable: bool) -> None:
    call = json.dumps({'name': 'python', 'arguments': {'code': code}}, ensure_ascii=not readable)
    assert parse_reply(f'<tool_call>\n{call}\n</tool_call>').code == code
    assert parse_reply(call).code == code
    assert parse_reply(f'```json\n{call}\n```').code == code


@given(st.lists(programs.filter(lambda code: '```' not in code), min_size=2, max_size=4))
def test_several_blocks_are_one_piece_of_code(pieces: list[str]) -> None:
    reply = '\nThen:\n'.join(f'```python\n{piece}\n```' for piece in pieces)
    assert parse_reply(reply).code == '\n\n'.join(pieces)


@given(st.text())
def test_any_text_is_a_reply(text: str) -> None:
    found = parse_reply(text)
    assert (found.form == 'none') == (found.code is None and not found.calls)
    assert not code_is_complete(text) or found.code


pieces = st.sampled_from(
    '``` ```python ~~~ ```` <code> </code> <think> </think> <tool_call> </tool_call> { } "code": "name": "python" " '
    '""" \' '
    "''' x = f(1) ( ) [ : , \\ # > >>> ... - 1. <|python_tag|> <|eom_id|> Output: word import def".split()
)
soups = st.lists(
    st.one_of(pieces, st.sampled_from(['\n', '\n', ' ', '\t', '\r\n', '\0', 'é', '\ud800'])), max_size=40
).map(''.join)


@given(soups)
def test_any_mixture_of_marks_is_a_reply(text: str) -> None:
    found = parse_reply(text)
    assert found.code is None or found.code.strip()
    if code_is_complete(text):
        assert found.code


@given(programs, before, after)
def test_code_is_complete_exactly_from_the_end_of_its_closing_line(code: str, before: str, after: str) -> None:
    head = f'{before}```python\n{code}\n```\n'
    reply = head + after
    complete = [end for end in range(len(reply) + 1) if code_is_complete(reply[:end])]
    assert complete == list(range(len(head), len(reply) + 1))
    assert parse_reply(head).code == code


def test_thoughts_are_never_complete_code() -> None:
    assert not code_is_complete('<think>\n```python\ndraft()\n```\n')
    assert code_is_complete('<think>\n```python\ndraft()\n```\n</think>\n```python\nreal()\n```\n')


def test_other_blocks_are_never_complete_code() -> None:
    assert not code_is_complete('```json\n{}\n```\n')
    assert not code_is_complete('```\nprint(1)\n```\n')
    assert not code_is_complete('```python\n\n```\n')


def test_prose_is_separated_from_the_code() -> None:
    found = parse_reply('<think>hm</think>\nFirst.\n```python\nx = 1\n```\nThen.\n```json\n{}\n```\nLast.')
    assert found.prose == 'First.\nThen.\nLast.'


def test_an_answer_keeps_its_fences_and_loses_its_thoughts() -> None:
    assert parse_reply('<think>hm</think>\nSee:\n```json\n{"a": 1}\n```').prose == 'See:\n```json\n{"a": 1}\n```'


def test_an_empty_block_is_not_an_answer() -> None:
    assert parse_reply('```python\n\n```').prose == ''
    assert parse_reply('Nothing to do.\n```python\n```').prose == 'Nothing to do.'


def test_a_call_of_python_among_other_calls_stays_a_call() -> None:
    found = parse_reply(
        '<tool_call>{"name": "todo", "arguments": {}}</tool_call>'
        '<tool_call>{"name": "python", "arguments": {"code": "print(1)"}}</tool_call>'
    )
    assert [(call.name, json.loads(call.arguments)) for call in found.calls] == [
        ('todo', {}),
        ('python', {'code': 'print(1)'}),
    ]


SIZE = 100_000
HOSTILE = {
    'backticks': '`' * SIZE,
    'backticks and a word': '`' * SIZE + 'x`',
    'closing lines': '```\n' * (SIZE // 4),
    'opening lines': '```python\n' * (SIZE // 10),
    'tags': '<code>' * 20_000,
    'tags on lines': '<code>\n' * 10_000,
    'tags and one end': '<code>\n' * 10_000 + '</code>',
    'thoughts': '<think>\n' * 10_000,
    'ends of thoughts': '</think>\n' * 10_000,
    'calls': '<tool_call>{</tool_call>\n' * 5_000,
    'half a call': '<tool_call>{"name": "python", "arguments": {"code": "' + '\\' * SIZE,
    'words': 'a b c\n' * 50_000,
    'code that is none': 'x = 1 a b c\n' * 10_000,
    'loops that are none': 'for x in ' * 20_000,
    'loops without a body': 'for x in y:\n' * 10_000,
    'parentheses': '(' * SIZE,
    'closed parentheses': '(' * 150 + 'a b' + ')' * 150,
    'minus': '-' * SIZE + '1',
    'sums': '1+' * SIZE + '1',
    'objects': '{"a":' * SIZE,
    'braces on lines': '{\n' * 30_000,
    'a string that never ends': '```python\nx = """\n' + '```\n' * 20_000,
    'strings of two kinds': '```python\nx = """\n```\n```python\ny = \'\'\'\n```\n' * 2_000,
    'spaces': '```' + ' ' * SIZE + '`',
    'lines that end with a mark': '```python\n' + 'f(1) a```\n' * 10_000,
    'mixed indentation': '```python\n' + '\tx\n y\n' * 10_000 + '```',
    'quotation marks': '>' * SIZE + '```',
    'line breaks': '\n' * SIZE,
    'nothing': '\0' * SIZE,
}


@pytest.mark.parametrize('text', HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_parsed_a_bounded_number_of_times(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow pattern would never come to the end of this test; a slow loop would parse the text over and over."""
    parsed = 0
    parse = ast.parse

    def counting(source: str) -> ast.Module:
        nonlocal parsed
        parsed += len(source)
        return parse(source)

    monkeypatch.setattr('habilis.agent.parsing.syntax.ast.parse', counting)
    parse_reply(text)
    code_is_complete(text)
    assert parsed <= 20 * len(text)


def test_code_without_a_fence_keeps_its_structure_when_prose_interrupts_it() -> None:
    code = 'def f():\n    x = g(1)\n{}    y = g(2)\nprint(f())'
    assert parse_reply(code.format('Now we continue with this.\n')).code == code.format('\n')
