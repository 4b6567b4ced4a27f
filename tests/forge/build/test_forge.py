"""A tool is built from a request: tests first, verified, and kept only if everything holds."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.build.forge import BuildOptions, Forge
from habilis.forge.library.library import Library
from habilis.journal import Store
from habilis.journal.stores.memory import MemoryStore
from habilis.models import Message, ScriptedModel

SPEC = '```python\ndef reverse_string(text: str) -> str:\n    """Return the text backwards."""\n```'
TESTS = """```python
def test_word():
    assert reverse_string('abc') == 'cba'

def test_empty():
    assert reverse_string('') == ''

def test_spaces():
    assert reverse_string(' ab') == 'ba '
```"""
CODE = (
    '```python\ndef reverse_string(text: str) -> str:\n    """Return the text backwards."""\n    return text[::-1]\n```'
)
WRONG = CODE.replace('text[::-1]', 'text')

STARTS = {
    'choose': 'Which of them does exactly',
    'confirm': 'Would a call of this function',
    'confirm call': 'This was computed',
    'compute': 'Write Python code that computes the answer',
    'spec': 'Design the function',
    'tests': 'Write tests for this function',
    'more tests': 'These tests pass, but',
    'implement': 'Implement this function',
    'repair': 'This implementation fails',
    'call': 'Answer it with one call',
    'words': 'The exact result',
}


class Builder:
    """A scripted model that answers by the stage it is asked in."""

    def __init__(self, **replies: str | list[str]) -> None:
        known: dict[str, str | list[str]] = {'spec': SPEC, 'tests': TESTS, 'implement': CODE, 'choose': 'NONE'}
        self._replies = {**known, **{key.replace('_', ' '): value for key, value in replies.items()}}
        self.stages: list[str] = []
        self.prompts: list[str] = []
        self.model = ScriptedModel(self.reply)
        self.dies_at = ''

    def reply(self, messages: Sequence[Message]) -> str:
        """What it says in this stage."""
        said = messages[-1].text
        stage = next((name for name, start in STARTS.items() if start in said), 'again')
        if stage == self.dies_at:
            msg = 'the process dies here'
            raise ConnectionError(msg)
        self.stages.append(stage)
        self.prompts.append(said)
        reply = self._replies[stage]
        if isinstance(reply, list):
            return reply.pop(0) if len(reply) > 1 else reply[0]
        return reply


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library."""
    return Library(tmp_path / 'library')


@pytest.fixture
def store() -> Store:
    """Where builds are recorded."""
    return MemoryStore()


def forge(library: Library, builder: Builder, **options: bool) -> Forge:
    """A forge with two candidates."""
    return Forge(library, builder.model, options=BuildOptions(candidates=2, **options))


async def test_a_tool_is_built_kept_and_reused(library: Library, store: Store) -> None:
    builder = Builder()
    built = await forge(library, builder).build("Reverse the string 'hello world'", journal=store)
    assert (built.status, built.name, built.version) == ('built', 'reverse_string', 1)
    assert builder.stages[:2] == ['spec', 'tests'], 'tests come before the code'
    assert library.manifest('reverse_string').origin == builder.model.name

    other = Builder(
        compute="```python\nanswer = 'nohtyP'\n```",
        call="```python\nreverse_string('Python')\n```",
        confirm_call='YES',
        words='It is nohtyP.',
    )
    again = forge(Library(library.folder), other)
    found = await again.build("Reverse 'Python'", journal=store)
    assert (found.status, found.name) == ('reused', 'reverse_string')
    assert await again.answer("Reverse 'Python'", found.name) == 'It is nohtyP.'
    assert 'spec' not in other.stages


async def test_a_good_model_is_asked_for_specification_and_tests_at_once(library: Library, store: Store) -> None:
    tests = TESTS.removeprefix('```python\n').removesuffix('```')
    builder = Builder(spec=SPEC.replace('\n```', f'\n{tests}# assumed: spaces count as letters\n```'))
    built = await Forge(library, builder.model).build('Reverse', journal=store)
    assert (built.status, builder.stages) == ('built', ['spec', 'implement', 'implement'])
    assert library.manifest('reverse_string').findings == ('assumed: spaces count as letters',)

    small = ScriptedModel(builder.reply, small=True)
    await Forge(Library(library.folder.with_name('other')), small).build('Reverse', journal=store)
    assert 'test functions' not in builder.prompts[3], 'one thing at a time'
    assert builder.stages[3:] == ['spec', 'implement', 'implement', 'implement'], 'what it wrote is not asked for again'


AT_ONCE = f"""```python
def reverse_string(text: str) -> str:
    \"""Return the text backwards.\"""
    return text[::-1]

{TESTS.removeprefix('```python').removesuffix('```').strip()}

def reverse_string_check(text: str) -> str:
    return ''.join(reversed(text))
```"""


async def test_a_good_model_builds_a_function_without_branches_in_one_request(library: Library, store: Store) -> None:
    builder = Builder(spec=AT_ONCE)
    built = await Forge(library, builder.model).build('Reverse', journal=store)
    assert (built.status, builder.stages) == ('built', ['spec'])
    assert library.candidate('reverse_string').code == CODE.removeprefix('```python\n').removesuffix('\n```')


async def test_what_was_written_in_one_request_must_agree_and_can_be_repaired(library: Library, store: Store) -> None:
    differs = Builder(spec=AT_ONCE.replace('reversed(text)', 'reversed(text.strip("x"))'))
    built = await Forge(library, differs.model).build('Reverse', journal=store)
    assert 'leaves open' in built.reason
    wrong = Builder(spec=AT_ONCE.replace('[::-1]', '').replace('reversed(text)', 'text'), repair=CODE)
    built = await Forge(library, wrong.model).build('Turn around', ["reverse_string('ab') == 'ba'"], journal=store)
    assert (built.status, wrong.stages) == ('built', ['spec', 'repair', 'repair'])


async def test_a_function_with_a_branch_is_written_by_independent_conversations(library: Library, store: Store) -> None:
    builder = Builder(spec=AT_ONCE.replace('return text[::-1]', "return text[::-1] if text else ''"))
    built = await Forge(library, builder.model).build('Reverse', journal=store)
    assert (built.status, builder.stages) == ('built', ['spec', 'implement', 'implement'])


async def test_code_that_the_review_refuses_is_repaired_and_notes_are_kept(library: Library, store: Store) -> None:
    spying = CODE.replace('return text', 'import inspect\n    return text')
    printing = CODE.replace('return text', 'print(text)\n    return text')
    builder = Builder(implement=spying, repair=printing)
    built = await forge(library, builder, red_check=False).build('Reverse a string', journal=store)
    assert built.status == 'built'
    assert 'the code imports inspect, which a tool has no use for' in builder.prompts[-1]
    assert library.manifest('reverse_string').findings == ('prints, which nobody sees: only its result counts',)


async def test_a_similar_tool_for_something_else_is_not_misused(library: Library, store: Store) -> None:
    await forge(library, Builder()).build('Reverse a string', journal=store)
    spec = SPEC.replace('reverse_string', 'reverse_words')
    tests = TESTS.replace('reverse_string', 'reverse_words').replace("'cba'", "'abc'").replace("'ba '", "'ab'")
    code = CODE.replace('reverse_string', 'reverse_words').replace('text[::-1]', "' '.join(text.split()[::-1])")
    builder = Builder(choose='NONE', spec=spec, tests=tests, implement=code)
    built = await forge(library, builder, red_check=False).build('Reverse the words of a string', journal=store)
    assert (built.status, built.name) == ('built', 'reverse_words')


async def test_the_code_is_written_without_the_tests(library: Library, store: Store) -> None:
    builder = Builder()
    await forge(library, builder).build('Reverse a string', journal=store)
    implementing = [text for stage, text in zip(builder.stages, builder.prompts, strict=True) if stage == 'implement']
    assert implementing
    assert not any('test_' in text for text in implementing)


async def test_a_wrong_implementation_is_repaired(library: Library, store: Store) -> None:
    builder = Builder(implement=WRONG, repair=CODE)
    built = await forge(library, builder).build('Reverse a string', journal=store)
    assert built.status == 'built'
    [report, *_] = [text for stage, text in zip(builder.stages, builder.prompts, strict=True) if stage == 'repair']
    assert "got 'abc', expected 'cba'" in report


async def test_what_does_not_pass_is_not_kept(library: Library, store: Store) -> None:
    builder = Builder(implement=WRONG, repair=WRONG)
    built = await forge(library, builder).build('Reverse a string', journal=store)
    assert built.status == 'refused'
    assert 'no implementation passes the tests' in built.reason
    assert builder.stages.count('repair') == 2  # and not again, as both repeat what has failed
    assert library.names() == []


async def test_a_refusal_names_the_failure_of_the_closest_code_and_not_an_empty_reply(
    library: Library, store: Store
) -> None:
    close = CODE.replace('text[::-1]', 'text[::-1].strip()')
    built = await forge(library, Builder(implement=[WRONG, close], repair='Sorry.')).build('Reverse', journal=store)
    assert "reverse_string(' ab') == 'ba ': got 'ba', expected 'ba '" in built.reason
    assert 'your reply' not in built.reason


async def test_the_examples_of_the_user_correct_the_types_of_the_specification(library: Library, store: Store) -> None:
    builder = Builder(spec=SPEC.replace('-> str', '-> bool'))
    built = await forge(library, builder).build('Reverse', ["reverse_string('ab') == 'ba'"], journal=store)
    assert built.status == 'built'
    assert 'def reverse_string(text: str) -> str' in builder.prompts[builder.stages.index('implement')]


async def test_only_who_has_another_idea_is_asked_to_repair_again(library: Library, store: Store) -> None:
    other = CODE.replace('text[::-1]', 'text[1:]')
    builder = Builder(implement=WRONG, repair=[WRONG, other, CODE])
    built = await forge(library, builder).build('Reverse a string', journal=store)
    assert (built.status, builder.stages.count('repair')) == ('built', 3)


async def test_a_failure_is_passed_to_the_next_attempt(library: Library, store: Store) -> None:
    await forge(library, Builder(implement=WRONG, repair=WRONG)).build('Reverse a string', journal=store)
    builder = Builder()
    await forge(library, builder).build('Reverse the string', journal=store)
    assert 'no implementation passes the tests' in builder.prompts[builder.stages.index('spec')]


async def test_tests_that_cannot_fail_are_sent_back(library: Library, store: Store) -> None:
    weak = '```python\n' + '\n'.join(f'def test_{n}():\n    reverse_string("a")\n' for n in range(3)) + '```'
    builder = Builder(tests=weak, again=TESTS)
    built = await forge(library, builder).build('Reverse a string', journal=store)
    assert built.status == 'built'
    assert 'the tests pass on a function that does nothing' in builder.prompts[builder.stages.index('again')]


async def test_tests_that_all_expect_the_same_are_sent_back(library: Library, store: Store) -> None:
    spec = '```python\ndef is_even(number: int) -> bool:\n    """Whether the number is even."""\n```'
    code = spec.replace('\n```', '\n    return number % 2 == 0\n```')
    same = '```python\n' + '\n'.join(f'def test_{n}():\n    assert is_even({2 * n})\n' for n in range(3)) + '```'
    better = same.replace('is_even(0)', 'not is_even(3)')
    builder = Builder(spec=spec, tests=same, again=better, implement=code)
    built = await forge(library, builder).build('Is it even?', ['is_even(10) == True'], journal=store)
    assert built.status == 'built'
    assert 'pass on a function that always returns True' in builder.prompts[builder.stages.index('again')]


async def test_a_function_may_give_the_same_for_all_inputs(library: Library, store: Store) -> None:
    spec = '```python\ndef cleared(items: list[int]) -> list[int]:\n    """The list without its items."""\n```'
    code = spec.replace('\n```', '\n    return []\n```')
    tests = '```python\n' + '\n'.join(f'def test_{n}():\n    assert cleared([{n}]) == []\n' for n in range(3)) + '```'
    builder = Builder(spec=spec, tests=tests, again=tests, implement=code)
    assert (await forge(library, builder).build('Clear it', journal=store)).status == 'built'
    assert builder.stages.count('again') == 1


async def test_tests_that_notice_few_mutants_are_refused(library: Library, store: Store) -> None:
    code = CODE.replace('return text[::-1]', 'if len(text) > 50:\n        return text + "?"\n    return text[::-1]')
    builder = Builder(implement=code, more_tests=TESTS)
    built = await forge(library, builder).build('Reverse a string', journal=store)
    assert built.status == 'refused'
    assert 'the tests notice only' in built.reason


async def test_more_tests_are_asked_for_with_calls_that_none_covers(library: Library, store: Store) -> None:
    code = CODE.replace('return text[::-1]', "if text == '':\n        return '-'\n    return text[::-1]")
    weak = TESTS.replace("reverse_string('') == ''", "reverse_string('aba') == 'aba'")
    more = "```python\ndef test_nothing():\n    assert reverse_string('') == '-'\n```"
    builder = Builder(implement=code, tests=weak, more_tests=more)
    built = await forge(library, builder).build('Reverse a string; nothing gives a dash', journal=store)
    assert built.status == 'built'
    asked = builder.prompts[builder.stages.index('more tests')]
    assert "- reverse_string('')\n" in asked
    assert 'line' not in asked, 'who writes tests does not see the code'


async def test_code_that_contradicts_many_of_the_tests_it_lacked_is_refused(library: Library, store: Store) -> None:
    code = CODE.replace('return text[::-1]', "if text == '':\n        return '-'\n    return text[::-1]")
    weak = TESTS.replace("reverse_string('') == ''", "reverse_string('aba') == 'aba'")
    more = "```python\ndef test_word():\n    assert reverse_string('') == ''\n```"
    builder = Builder(implement=code, tests=weak, more_tests=more)
    built = await forge(library, builder).build('Reverse a string', journal=store)
    assert built.status == 'refused'
    assert "reverse_string('') == '': got '-', expected ''" in built.reason


async def test_the_example_of_the_user_decides(library: Library, store: Store) -> None:
    lying = TESTS.replace("'cba'", "'abc'")
    builder = Builder(tests=lying, implement=WRONG, repair=WRONG)
    built = await forge(library, builder).build('Reverse', ["reverse_string('ab') == 'ba'"], journal=store)
    assert built.status == 'refused', 'tests and code of the model agree, and both are wrong'
    assert 'reverse_string(<name>: str)' in builder.prompts[builder.stages.index('spec')]


ONE_WRONG = TESTS.replace(
    'def test_empty', "def test_wrong():\n    assert reverse_string(' x ') == 'x'\n\ndef test_empty"
)


async def test_a_test_that_independent_implementations_contradict_is_dropped(library: Library, store: Store) -> None:
    built = await forge(library, Builder(tests=ONE_WRONG)).build('Reverse', journal=store)
    assert built.status == 'built'
    assert 'test_wrong' not in library.candidate('reverse_string').tests


@pytest.mark.parametrize('better', [TESTS, ONE_WRONG])
async def test_tests_that_are_mostly_wrong_are_written_anew(library: Library, store: Store, better: str) -> None:
    wrong = TESTS.replace("'cba'", "'abc'").replace("'ba '", "' ab'")
    builder = Builder(tests=[wrong, better])
    built = await forge(library, builder).build('Reverse', ["reverse_string('ab') == 'ba'"], journal=store)
    assert built.status == 'built'
    assert builder.stages.count('tests') == 2
    assert 'repair' not in builder.stages, 'code that fulfils the example was not changed to fit wrong tests'


async def test_an_example_of_the_user_is_never_dropped(library: Library, store: Store) -> None:
    builder = Builder(repair=CODE)
    built = await forge(library, builder).build('Reverse', ["reverse_string(' x ') == 'x'"], journal=store)
    assert built.status == 'refused'


async def test_a_test_of_the_model_cannot_replace_the_example_of_the_user(library: Library, store: Store) -> None:
    lying = TESTS.replace('test_word', 'test_example_1').replace("'cba'", "'abc'").replace("'ba '", "' ab'")
    lying = lying.replace('def test_empty', "def test_one():\n    assert reverse_string('x') == 'x'\n\ndef test_empty")
    builder = Builder(tests=lying, implement=WRONG, repair=WRONG)
    built = await forge(library, builder, red_check=False).build(
        'Reverse', ["reverse_string('ab') == 'ba'"], journal=store
    )
    assert built.status == 'refused'
    assert library.names() == []


async def test_what_was_measured_is_kept_with_the_tool(library: Library, store: Store) -> None:
    await forge(library, Builder()).build('Reverse', ["reverse_string('ab') == 'ba'"], journal=store)
    made = library.manifest('reverse_string')
    assert (made.tests, made.killed) == (4, made.mutants)
    assert made.mutants > 0
    assert 'def test_example_1' in library.candidate('reverse_string').tests


async def test_implementations_that_differ_show_a_vague_request(library: Library, store: Store) -> None:
    other = CODE.replace('text[::-1]', 'text[::-1] if len(text) < 4 else text')
    tests = TESTS.replace("reverse_string(' ab') == 'ba '", "reverse_string('abcba') == 'abcba'")
    builder = Builder(implement=[CODE, other], tests=tests)
    built = await forge(library, builder, red_check=False).build('Reverse', journal=store)
    assert built.status == 'refused'
    assert 'the request leaves open what reverse_string(' in built.reason


@pytest.mark.parametrize('stage', ['spec', 'tests', 'implement'])
async def test_a_build_that_died_is_resumed_without_asking_again(library: Library, store: Store, stage: str) -> None:
    first = Builder()
    first.dies_at = stage
    with pytest.raises(ConnectionError):
        await forge(library, first).build('Reverse a string', journal=store, run_id='b')
    assert library.names() == []
    second = Builder()
    built = await forge(library, second).resume('b', journal=store)
    assert built.status == 'built'
    assert not {*first.stages} & {*second.stages} - {'implement'}


async def test_two_builds_of_the_same_tool_end_as_one(library: Library, store: Store) -> None:
    forges = [forge(library, Builder()) for _ in range(2)]
    built = await asyncio.gather(*(one.build('Reverse a string', journal=store) for one in forges))
    assert sorted(one.status for one in built) == ['built', 'reused']
    assert library.versions('reverse_string') == [1]


async def test_a_build_never_returns_the_tool_of_another_request(library: Library, store: Store) -> None:
    def change(text: str) -> str:
        return text.replace('reverse_string', 'rev')

    first = Builder(spec=change(SPEC), tests=change(TESTS), implement=change(CODE))
    tests = '```python\n' + ''.join(f'def test_{n}():\n    assert rev({n}) == {-n}\n' for n in (3, 4, 5)) + '```'
    stub = 'def rev(number: int) -> int:\n    """The number with the other sign, by rev."""\n'
    code = f'```python\n{stub}    return -number\n```'
    second = Builder(spec=f'```python\n{stub}```', tests=tests, implement=code)
    builds = [forge(library, first).build('Reverse a string', journal=store)]
    builds += [forge(library, second).build('Reverse a number', ['rev(2) == -2'], journal=store)]
    built = await asyncio.gather(*builds)
    assert sorted(one.name for one in built) == library.names() == ['rev', 'rev_2']
    assert ['text: str' in library.manifest(one.name).signature for one in built] == [True, False]


BAD_SPECS: dict[str, Callable[[str], str]] = {
    'json': lambda spec: spec.replace('reverse_string', 'json'),
    'no hints': lambda spec: spec.replace(': str', ''),
    'no docstring': lambda spec: spec.replace('"""Return the text backwards."""', 'pass'),
    'no code': lambda _: 'I cannot.',
}


@pytest.mark.parametrize('kind', BAD_SPECS)
async def test_a_bad_specification_is_sent_back(library: Library, store: Store, kind: str) -> None:
    builder = Builder(spec=BAD_SPECS[kind](SPEC), again=SPEC)
    assert (await forge(library, builder).build('Reverse a string', journal=store)).status == 'built'
    refused = Builder(spec=BAD_SPECS[kind](SPEC), again=BAD_SPECS[kind](SPEC))
    empty = Library(library.folder.with_name('other'))
    assert (await forge(empty, refused).build('Reverse a string', journal=store)).status == 'refused'


@pytest.mark.parametrize('example', ['2 +', 'x = 1', 'import os', ''])
async def test_an_example_that_is_none_is_refused(library: Library, store: Store, example: str) -> None:
    with pytest.raises(ForgeError, match='not an example'):
        await forge(library, Builder()).build('Reverse', [example], journal=store)
