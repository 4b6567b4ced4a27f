"""A tool in JavaScript is built by the same stages."""

from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.library.library import Library
from habilis.journal.stores.memory import MemoryStore
from tests.forge.build.test_forge import CODE, Builder, forge

pytestmark = pytest.mark.usefixtures('quickjs')

JAVASCRIPT = """```js
function reverse_string(text) {
  return [...text].reverse().join('');
}
```"""
WRONG = JAVASCRIPT.replace('.reverse()', '')


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library."""
    return Library(tmp_path / 'library')


async def test_it_is_built_repaired_and_called(library: Library) -> None:
    builder = Builder(
        implement=WRONG, repair=JAVASCRIPT, call="```python\nreverse_string('ab')\n```", words='It is "ba".'
    )
    builds = forge(library, builder)
    built = await builds.build('Reverse a string', language='javascript', journal=MemoryStore())
    assert (built.status, built.name) == ('built', 'reverse_string')
    assert 'got "abc", expected "cba"' in builder.prompts[builder.stages.index('repair')]
    made = library.candidate('reverse_string')
    assert made.language == 'javascript'
    assert made.code.startswith('/**\n * Return the text backwards.\n')
    assert 'assert.deepStrictEqual(reverse_string("abc"), "cba");' in made.tests
    assert library.manifest('reverse_string').killed > 0
    assert await builds.answer("Reverse 'ab'", 'reverse_string') == 'It is "ba".'


async def test_implementations_that_differ_on_generated_inputs_are_refused(library: Library) -> None:
    other = JAVASCRIPT.replace('return', "if (text[0] === 'b') return text;\n  return")
    builder = Builder(implement=[JAVASCRIPT, other])
    built = await forge(library, builder).build('Reverse it', language='javascript', journal=MemoryStore())
    assert (built.status, library.names()) == ('refused', [])
    assert "the request leaves open what reverse_string('b" in built.reason


async def test_a_tool_in_another_language_is_reused_only_if_none_is_asked_for(library: Library) -> None:
    example = ["reverse_string('ab') == 'ba'"]
    builds = forge(library, Builder(implement=JAVASCRIPT))
    await builds.build('Reverse a string', example, language='javascript', journal=MemoryStore())
    again = await forge(library, Builder()).build('Reverse a string', example, journal=MemoryStore())
    assert (again.status, again.name) == ('reused', 'reverse_string')
    builder = Builder(implement=CODE)
    other = await forge(library, builder).build('Reverse a string', example, language='python', journal=MemoryStore())
    assert (other.status, builder.stages) == ('refused', []), 'the model is not asked: it could not choose another name'
    assert "there is already a tool 'reverse_string'" in other.reason


async def test_tools_in_javascript_are_not_composed(library: Library) -> None:
    with pytest.raises(ForgeError, match='only tools in Python can be composed'):
        await forge(library, Builder()).build('Both', uses=['a', 'b'], language='javascript')
