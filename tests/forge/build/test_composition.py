"""Tools that worked together become one tool."""

from pathlib import Path

import pytest

from habilis.core.errors import ForgeError, ToolDefinitionError, ToolExists, ToolNotFound
from habilis.forge.build.composition import compose, suggest
from habilis.forge.build.forge import BuildOptions, Forge
from habilis.forge.library.library import Library
from habilis.journal.stores.memory import MemoryStore
from tests.forge.build.test_forge import Builder
from tests.forge.samples import double, fourfold

SPEC = '```python\ndef eightfold(number: int) -> int:\n    """Eight times a number."""\n```'
CODE = """```python
from library import double, fourfold

def eightfold(number: int) -> int:
    \"\"\"Eight times a number.\"\"\"
    return double(fourfold(number))
```"""
ALONE = CODE.replace('double(fourfold(number))', 'number * 8').replace('from library import double, fourfold\n', '')
TESTS = (
    '```python\n' + '\n'.join(f'def test_{n}():\n    assert eightfold({n}) == {8 * n}\n' for n in (1, 2, 30)) + '```'
)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double())
    made.add(fourfold())
    return made


def forge(library: Library, builder: Builder) -> Forge:
    return Forge(library, builder.model, options=BuildOptions(candidates=1))


async def test_what_worked_twice_is_suggested_until_it_is_composed(library: Library) -> None:
    assert suggest(library).compose == ()
    for task in ('eight times 2', 'eight times 3'):
        library.usage.record_request(task, ['double', 'fourfold'], ok=True)
    [found] = suggest(library).compose
    assert found.tools == ('double', 'fourfold')
    builder = Builder(spec=SPEC, tests=TESTS, implement=CODE)
    built = await compose(forge(library, builder), found.tools, 'eightfold', journal=MemoryStore())
    assert (built.status, built.name) == ('built', 'eightfold'), built.reason
    assert library.manifest('eightfold').uses == {'double': 1, 'fourfold': 1}
    assert builder.stages[0] == 'spec', 'a tool that does a part of it is not reused'
    assert 'double, then fourfold' in builder.prompts[0]
    assert '- eight times 3' in builder.prompts[0]
    assert suggest(library).compose == ()


async def test_it_must_use_the_tools(library: Library) -> None:
    builder = Builder(spec=SPEC, tests=TESTS, implement=ALONE, repair=CODE)
    built = await compose(forge(library, builder), ['double', 'fourfold'], 'eightfold', journal=MemoryStore())
    assert (built.status, built.name) == ('built', 'eightfold'), built.reason
    told = builder.prompts[builder.stages.index('repair')]
    assert 'use `from library import double`' in told


async def test_what_cannot_be_composed_is_refused_before_the_model_is_asked(library: Library) -> None:
    builder = Builder()
    for tools, name, kind in (
        (['double'], 'new', ForgeError),
        (['double', 'nope'], 'new', ToolNotFound),
        (['double', 'fourfold'], 'double', ToolExists),
        (['double', 'fourfold'], 'len', ToolDefinitionError),
    ):
        with pytest.raises(kind):
            await compose(forge(library, builder), tools, name)
    assert builder.stages == []


def test_successful_tools_rank_first_and_failing_ones_do_not_count(library: Library) -> None:
    library.add(double('third'))
    for name, calls, failed in (('double', 10, 5), ('fourfold', 4, 0), ('third', 3, 3)):
        for number in range(calls):
            library.usage.record(name, 1, ok=number >= failed, seconds=0.1)
    library.usage.record('deleted', 1, ok=True, seconds=0.1)
    found = suggest(library)
    assert [(one.name, one.successes, one.calls) for one in found.popular] == [('fourfold', 4, 4), ('double', 5, 10)]
    assert [one.name for one in found.retire] == ['double']
    library.usage.record_request('a', ['double', 'deleted'], ok=True)
    library.usage.record_request('b', ['double', 'deleted'], ok=True)
    assert suggest(library).compose == ()
