"""Tests as models write them: read one assert at a time, extended, and left out where all implementations disagree."""

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from habilis.core.syntax import parse_module
from habilis.forge.build.examples import EXAMPLE_TEST, module_with_tests
from habilis.forge.build.requests import code_block, functions_in, has_code_block
from habilis.forge.checks.verification import passes_when_wrong, verify
from habilis.forge.contract import Candidate, Refused, Verification

MAX_ASSERTS = 20
"""Asserts after which a model on this machine is stopped: small models go on until their context is full."""


def has_enough_tests(reply: str) -> bool:
    """Whether a reply that is still streaming has all the tests that are needed."""
    return has_code_block(reply) or reply.count('assert ') > MAX_ASSERTS


def read_tests(reply: str, name: str) -> dict[str, str]:
    """The tests of a reply that use the function, by name. The names of the user's examples are not the model's.

    Asserts that stand in one function become a test each, so that a wrong one does not take the others with it.
    """
    found: dict[str, str] = {}
    for key, source in functions_in(code_block(reply)).items():
        if key.startswith('test') and not key.startswith(EXAMPLE_TEST):
            found |= {one: text for one, text in _single_tests(key, source) if _uses(text, name)}
    return found


def _uses(source: str, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(parse_module(source)))


def _single_tests(name: str, source: str) -> Iterator[tuple[str, str]]:
    [function] = parse_module(source).body
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if len(body) < 2 or not all(isinstance(one, ast.Assert) for one in body):
        yield name, source
        return
    asserts = dict.fromkeys(ast.unparse(one) for one in body)
    for number, text in enumerate(asserts, start=1):
        yield f'{name}_{number}', f'def {name}_{number}() -> None:\n    {text}'


async def weakness(candidate: Candidate, *, is_first: bool) -> str:
    """Why tests show nothing, whatever the code is; empty if they can fail.

    The first time, tests that all expect the same are weak. After that there may be nothing else to expect.
    """
    if wrong := await passes_when_wrong(candidate):
        return f'the tests pass on a function that {wrong}, so they show nothing: add inputs that give something else'
    asserts = [node for node in ast.walk(parse_module(candidate.tests)) if isinstance(node, ast.Assert)]
    if asserts and all(map(_is_about_shape, asserts)):
        return 'the tests look at the type or length of results only: compare results with the values that are right'
    if not is_first:
        return ''
    expected = {_expected(node, candidate.name) for node in asserts}
    if len(expected) == 1 and (always := expected.pop()):
        return f'the tests pass on a function that always returns {always[:100]}: add inputs that give something else'
    return ''


def _is_about_shape(node: ast.Assert) -> bool:
    """Whether an assert looks at the type or the length of something, as `len(f(1)) == 3` does."""
    match node.test:
        case ast.Call(func=ast.Name(id=called)) | ast.Compare(left=ast.Call(func=ast.Name(id=called))):
            return called in ('isinstance', 'len', 'type', 'callable', 'hasattr')
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case _:
            return False


def _expected(node: ast.Assert, name: str) -> str:
    """What an assert expects of a call of the function; empty if it is another kind of assert."""
    match node.test:
        case ast.Compare(left=ast.Call(func=ast.Name(id=called)), ops=[ast.Eq() | ast.Is()], comparators=[value]):
            return ast.unparse(value) if called == name else ''
        case ast.Call(func=ast.Name(id=called)):
            return 'True' if called == name else ''
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id=called))):
            return 'False' if called == name else ''
        case _:
            return ''


async def with_more_tests(make: Callable[[str], Candidate], name: str, tests: str, more: Mapping[str, str]) -> str:
    """The module with those of the new tests that the candidate passes which `make` makes of them.

    Raises `Refused` if it fails more than a few: then who writes tests understands the request in another way.
    """
    known = functions_in(tests)
    new = dict(_renamed(key, source, known) for key, source in more.items() if source != known.get(key))
    checked = await verify(make(module_with_tests(name, {**known, **new})))
    if checked.error:  # one of the new tests does not end, or breaks the others
        return tests
    failed = {test.name: test.error for test in checked.tests if test.name in new and not test.ok}
    if not _are_few(len(failed), len(new)):
        msg = f'the request leaves open what is right; give an example for this: {next(iter(failed.values()))[:300]}'
        raise Refused(msg)
    return module_with_tests(name, {**known, **{key: text for key, text in new.items() if key not in failed}})


def _renamed(name: str, source: str, known: Collection[str]) -> tuple[str, str]:
    """A test with a name that no known test has."""
    new = name
    while new in known:
        new += '_more'
    return new, source.replace(f'def {name}(', f'def {new}(', 1)


def _are_few(some: int, total: int) -> bool:
    return 3 * some <= total


def outlying_tests(results: Sequence[Verification]) -> list[str]:
    """Tests that no implementation passes, and for which most give the same other value, if these pass all other tests.

    An example of the user is never one. With one implementation there is nothing to compare.
    """
    runs = [result.tests for result in results if result.tests and not result.error]
    [(agreed, votes)] = Counter(runs).most_common(1) or [((), 0)]
    failed = {test.name for test in agreed if not test.ok}
    passed_by_any = {test.name for run in runs for test in run if test.ok}
    is_majority = votes >= 2 and 2 * votes > len(results)
    if not is_majority or failed & passed_by_any or any(name.startswith(EXAMPLE_TEST) for name in failed):
        return []
    return sorted(failed) if _are_few(len(failed), len(agreed)) else []


def passes_examples(result: Verification) -> bool:
    """Whether the code could be run and fulfils the user's examples."""
    return bool(result.tests) and all(test.ok for test in result.tests if test.name.startswith(EXAMPLE_TEST))
