"""Python, prose that happens to parse, and the framing of code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.parsing.syntax import (
    compiles,
    is_code,
    is_obvious_code,
    open_quote,
    read_literal,
    statements,
    unframe,
)
from tests.agent.parsing.programs import programs
from tests.cases import each_case


@each_case('code', ['print(1)', 'x = 1', 'import os', 'await f()', 'for i in x: pass', 'del x', 'x += 1'])
def test_python_that_does_something_is_code(code: str) -> None:
    assert is_code(code)


WORDS = ['Yes', '42', 'a and b', 'Note: this', 'print', '"text"', '[1, 2]', 'pass', 'raise prices', 'global warming']
NONSENSE = {'nothing': '', 'nul': '\0', 'half': '\ud800', 'deep': '(' * 5000, 'deeper': '-' * 100_000 + '1'}


@each_case('text', [*WORDS, 'await approval', 'return 4', 'not Python'])
def test_words_that_happen_to_parse_are_not_code(text: str) -> None:
    assert not is_code(text)
    assert not is_obvious_code(text)


@pytest.mark.parametrize('text', NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_not_python(text: str) -> None:
    assert not is_code(text)
    assert not is_obvious_code(text)


@each_case(
    ('code', 'does'),
    [('x = 4', False), ('x = 8 / 2', False), ('del x', False), ('x = f(4)', True), ('x = [i for i in y]', True)],
)
def test_without_a_mark_an_assignment_must_compute_something(code: str, does: bool) -> None:
    assert is_obvious_code(code) is does


def test_warnings_about_the_code_are_not_shown_on_the_host() -> None:
    odd = "x = re.findall('\\d+', text)"
    assert statements(odd) is not None
    assert compiles(odd)
    assert compiles('1 is 1')
    assert read_literal("'\\d'") == '\\d'


@each_case(
    ('code', 'would'),
    [('await f()', True), ('x = (1,', False), ('return 1', False), ('\0', False), ('(' * 5000, False), ('', True)],
)
def test_whether_code_would_run(code: str, would: bool) -> None:
    assert compiles(code) is would


@each_case('text', ['x', 'f()', '', '(', '\0', '[' * 5000, '{[]: 1}', '1 + "a"'])
def test_text_that_is_not_a_literal_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r'literal|malformed|null|unhashable'):
        read_literal(text)


@each_case(
    ('line', 'before', 'after'),
    [
        ('x = 1', '', ''),
        ('x = """', '', '"""'),
        ("x = '''", '', "'''"),
        ('x = """a"""', '', ''),
        ('# """', '', ''),
        ('x = \'"""\'', '', ''),
        ('x = "it\'s" + \'"\'', '', ''),
        ('words', '"""', '"""'),
        ("'''", '"""', '"""'),
        ('"""', '"""', ''),
        ('\\"""', '"""', '"""'),
        ('""" + """', '"""', '"""'),
        ('""" # """', '"""', ''),
        ('x = "never closed', '', ''),
        ('x = "ends with \\', '', ''),
        ('x = "" + """', '', '"""'),
    ],
)
def test_which_triple_quote_is_open_after_a_line(line: str, before: str, after: str) -> None:
    assert open_quote(line, before) == after


@given(programs)
def test_after_a_whole_program_no_quote_is_open(code: str) -> None:
    quote = ''
    for line in code.split('\n'):
        quote = open_quote(line, quote)
    assert quote == ''


@given(st.text('"\'\\# a', max_size=30), st.sampled_from(['', '"""', "'''"]))
def test_any_line_can_be_read(line: str, before: str) -> None:
    assert open_quote(line, before) in ('', '"""', "'''")


def test_blank_lines_and_tabs_in_strings_are_not_changed() -> None:
    code = 'text = """\n\tTab\n   \n"""\nprint(text)'
    assert unframe(f'\n  \n{code}\n\n') == code


def test_the_margin_is_removed_even_if_a_string_has_less_of_it() -> None:
    assert unframe('    x = """\nfree\n"""\n    print(x)') == 'x = """\nfree\n"""\nprint(x)'


MIXED = ['if x:\n\ty = f(1)\n    z = f(2)\n', 'def f():\n    x = 1\n\treturn x\nprint(f())']


@pytest.mark.parametrize('code', MIXED)
def test_tabs_are_never_expanded(code: str) -> None:
    assert unframe(code) == code.rstrip()
    assert is_code(code)
    assert is_obvious_code(code)


def test_prompts_and_output_are_removed_and_the_input_stays_as_written() -> None:
    session = '  >>> x = """a  \n  ... b\t"""\n  >>> x\n  output\n'
    assert unframe(session) == 'x = """a  \nb\t"""\nx'


def test_a_given_margin_does_not_apply_to_the_input_of_a_session() -> None:
    assert unframe('  >>> for i in x:\n  ...   f(i)', '  ') == 'for i in x:\n  f(i)'
    assert unframe('    y = 1\nf(y)', '') == '    y = 1\nf(y)'
