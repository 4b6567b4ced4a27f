"""Verification of candidates in a sandbox."""

from dataclasses import replace

from habilis.core.limits import Limits
from habilis.forge.checks.verification import guest_code, passes_when_wrong, used_tools, verify, verify_all
from habilis.forge.contract import Candidate, Verification
from habilis.sandbox import Sandbox
from tests.forge.samples import double, fourfold, tool

QUICK = Limits(seconds=2, memory_mb=256)


def with_tests(body: str) -> Candidate:
    """`double` with other tests."""
    return replace(double(), tests=f'from tool import double\n\n\n{body}')


async def test_a_candidate_that_passes() -> None:
    result = await verify(double())
    assert result.ok
    assert [(test.name, test.ok) for test in result.tests] == [('test_three', True)]
    assert result.report == ''


async def test_a_failing_test_says_which_values_it_had() -> None:
    tests = 'def test_a() -> None:\n    assert double(3) == 7\n\n\ndef test_b() -> None:\n    assert double(1) == 2\n'
    result = await verify(with_tests(tests))
    assert not result.ok
    assert [test.ok for test in result.tests] == [False, True]
    assert result.report == 'test_a: line 5: assert double(3) == 7: got 6, expected 7'


async def test_stop_ends_at_the_first_failure() -> None:
    tests = 'def test_a() -> None:\n    assert False\n\n\ndef test_b() -> None: ...\n'
    result = await verify(with_tests(tests), stop=True)
    assert [test.name for test in result.tests] == ['test_a']


async def test_an_exception_is_named_with_the_line_of_the_test() -> None:
    result = await verify(replace(with_tests('def test_a() -> None:\n    assert double({}) == 7\n')))
    assert result.report.startswith('test_a: line 5: assert double({}) == 7: TypeError: ')


async def test_no_tests_are_no_success() -> None:
    assert (await verify(with_tests(''))).report == 'there are no tests'


async def test_syntax_errors_name_the_file() -> None:
    assert 'the tests: SyntaxError' in (await verify(with_tests('def test_a('))).report
    assert 'the code: SyntaxError' in (await verify(replace(double(), code='def'))).report


async def test_an_endless_loop_names_the_test() -> None:
    tests = 'def test_fine() -> None: ...\n\n\ndef test_endless() -> None:\n    while True:\n        pass\n'
    result = await verify(with_tests(tests), limits=QUICK)
    assert not result.ok
    assert result.report.startswith('in test_endless: ')


async def test_a_loop_that_catches_everything_is_ended_too() -> None:
    body = 'while True:\n        try:\n            while True: pass\n        except BaseException: pass'
    wrong = replace(tool('double', body), tests=double().tests)
    assert not (await verify(wrong, limits=QUICK)).ok


async def test_a_memory_bomb_is_an_error_of_the_test() -> None:
    result = await verify(with_tests('def test_bomb() -> None:\n    x = bytearray(10**10)\n'))
    assert not result.ok
    assert 'test_bomb' in result.report


async def test_leaving_the_interpreter_is_no_success() -> None:
    for body in ('raise SystemExit(0)', 'import os; os._exit(0)', 'raise KeyboardInterrupt'):
        wrong = replace(tool('double', body), tests=double().tests)
        assert not (await verify(wrong, limits=QUICK)).ok, body


async def test_code_that_changes_the_results_is_no_success() -> None:
    body = 'import sys; sys._getframe(2).f_locals["outcomes"].append(1); return number * 2'
    result = await verify(replace(tool('double', body), tests=double().tests))
    assert isinstance(result, Verification)
    assert not result.ok


async def test_host_files_and_network_are_out_of_reach() -> None:
    tests = 'def test_host() -> None:\n    assert "root" in open("/etc/passwd").read()\n'
    assert 'FileNotFoundError' in (await verify(with_tests(tests))).report or not (await verify(with_tests(tests))).ok
    tests = 'def test_net() -> None:\n    import urllib.request\n    urllib.request.urlopen("http://127.0.0.1:1")\n'
    assert not (await verify(with_tests(tests))).ok


async def test_tests_that_pass_on_an_obviously_wrong_function_prove_nothing() -> None:
    assert await passes_when_wrong(with_tests('def test_a() -> None:\n    double(3)\n')) == 'does nothing'
    zero = with_tests('def test_a() -> None:\n    assert double(0) == 0\n')
    assert await passes_when_wrong(zero) == 'returns its first argument'
    assert not await passes_when_wrong(double())


async def test_what_a_tool_uses_is_there() -> None:
    assert (await verify(fourfold())).ok
    assert not (await verify(fourfold(double(factor=3)))).ok
    assert [one.name for one in used_tools(fourfold())] == ['double']


async def test_several_candidates_do_not_see_each_other() -> None:
    marking = tool('double', 'import builtins; builtins.mark = 1; return number * 2')
    reading = tool('double', 'import builtins; return number * (3 if hasattr(builtins, "mark") else 2)')
    results = await verify_all([replace(one, tests=double().tests) for one in (marking, reading, reading)])
    assert [result.ok for result in results] == [True, True, True]


async def test_the_cases_of_parametrize_are_one_test() -> None:
    tests = """import pytest
from tool import double

@pytest.mark.parametrize('sign', [1, -1])
@pytest.mark.parametrize(('number', 'twice'), [(1, 2), (3, 6)])
def test_it(number: int, twice: int, sign: int) -> None:
    assert double(sign * number) == sign * twice
"""
    assert (await verify(replace(double(), tests=tests))).ok
    failed = await verify(replace(double(factor=3), tests=tests))
    assert [one.name for one in failed.tests] == ['test_it']
    assert "got 3, expected 2 (with {'number': 1, 'twice': 2, 'sign': 1})" in failed.report


async def test_a_sandbox_with_another_python_compiles_the_runner_itself() -> None:
    code = await guest_code()
    other = code.replace('is_known = ', 'is_known = not ')
    assert other != code
    async with await Sandbox.create(checkpoints=False) as sandbox:
        for loading in (code, other):
            assert (await sandbox.run(f'{loading}\n_Near(0.3) == 0.1 + 0.2')).value is True


async def test_an_object_cannot_say_itself_that_it_is_what_a_test_expects() -> None:
    always = 'class Same(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n'
    for made in ('Same(7)', 'type("All", (), {"__eq__": lambda *_: True})()', '[Same(7)]'):
        wrong = replace(
            double(), code=f'{always}\ndef double(number: int) -> int:\n    """Lie."""\n    return {made}\n'
        )
        assert not (await verify(wrong)).ok, made


async def test_a_result_that_is_not_plain_data_is_named() -> None:
    wrong = replace(tool('double', 'yield number * 2'), tests=double().tests)
    assert 'the result, the value is not plain data but a generator' in (await verify(wrong)).report
