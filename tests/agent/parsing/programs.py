"""Little Python programs, made by hypothesis."""

import ast
from collections.abc import Sequence

from hypothesis import strategies as st

names = st.sampled_from(['x', 'total', 'rows', 'größe', 'имя', '_tmp'])
texts = st.text(st.characters(exclude_categories=['Cs', 'Cc'], exclude_characters='\x85\u2028\u2029'), max_size=12)
literals = st.one_of(
    st.integers(-99, 10**6).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    texts.map(repr),
    texts.map(lambda text: f'f{text.replace("{", "{{").replace("}", "}}")!r}'),
    st.lists(st.integers(0, 9), max_size=4).map(repr),
    st.dictionaries(texts, st.booleans(), max_size=2).map(repr),
)
documents = st.lists(
    st.sampled_from(
        ['# Title', '', 'It is a sentence, said Ann.', '```', '```python', 'x = 1', '    indented', '<code>', '~~~']
    ),
    max_size=5,
).map(lambda lines: '\n'.join(['"""', *lines, '"""']))

simple = st.one_of(
    st.builds('{} = {}'.format, names, literals),
    st.builds('{} = {}'.format, names, documents),
    st.builds('print({})'.format, literals),
    st.builds('{}.append({})  # it is "here"'.format, names, literals),
    st.builds('final_answer({})'.format, names),
    st.just('import math'),
)


def indented(lines: Sequence[str]) -> str:
    return '\n'.join(f'    {line}' for statement in lines for line in statement.split('\n'))


flat = st.one_of(st.builds('{} = {}'.format, names, literals), st.builds('print({})'.format, literals))
blocks = st.lists(flat, min_size=1, max_size=3).map(indented)
compound = st.one_of(
    st.builds('for {} in range(3):\n{}'.format, names, blocks),
    st.builds('def {}():\n{}\n\n    return 1'.format, names, blocks),
    st.builds('if {}:\n{}\nelse:\n{}'.format, names, blocks, blocks),
    st.builds('with open({}) as {}:\n{}'.format, literals, names, blocks),
)


def is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


programs = st.lists(st.one_of(simple, compound), min_size=1, max_size=5).map('\n'.join).filter(is_python)
"""Programs that begin and end with something else than white space."""
