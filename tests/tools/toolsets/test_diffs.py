"""The diff that a person sees before a change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.tools.toolsets.diffs import unified_diff
from tests.tools.patches import apply

texts = st.lists(
    st.sampled_from(['a', 'b', 'c', 'a\r', '', '\x0c', '\u2028', '-', '+', '\\ No newline', '@@'])
).flatmap(lambda lines: st.sampled_from(['\n'.join(lines), '\n'.join([*lines, ''])]))


@given(texts, texts)
def test_d15_a_diff_makes_the_new_text_of_the_old(before: str, after: str) -> None:
    diff = unified_diff('x.txt', before, after)
    assert apply(diff, before) == after
    assert (diff == '') == (before == after)


@given(texts)
def test_the_diff_of_a_new_file_holds_all_of_it(after: str) -> None:
    diff = unified_diff('x.txt', None, after)
    assert diff.startswith('--- /dev/null\n+++ b/x.txt\n')
    assert apply(diff, '') == after


def test_a_diff_looks_as_people_know_it() -> None:
    assert unified_diff('a/b.txt', 'one\ntwo\nthree\n', 'one\n2\nthree\n') == (
        '--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n'
    )


@pytest.mark.parametrize(
    ('before', 'after', 'body'),
    [
        ('a', 'a\n', '-a\n\\ No newline at end of file\n+a\n'),
        ('a\n', 'a', '-a\n+a\n\\ No newline at end of file\n'),
        ('a\r\n', 'a\n', '-a\r\n+a\n'),
        ('a\x0cb\n', 'a\x0cc\n', '-a\x0cb\n+a\x0cc\n'),
    ],
)
def test_line_ends_are_distinguished(before: str, after: str, body: str) -> None:
    assert unified_diff('x', before, after).endswith(f'@@ -1 +1 @@\n{body}')


def test_a_name_with_a_line_break_cannot_pretend_to_be_part_of_the_diff() -> None:
    diff = unified_diff('x\n+++ b/harmless', '', 'y\n')
    assert diff.splitlines()[:2] == ["--- a/'x\\n+++ b/harmless'", "+++ b/'x\\n+++ b/harmless'"]
