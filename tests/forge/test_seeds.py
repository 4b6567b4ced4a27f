"""The seed library: every tool in it meets what the forge asks of a candidate."""

import ast
import sys

import pytest

from habilis.core.syntax import parse_module
from habilis.forge.checks.inputs import calls_in
from habilis.forge.checks.mutation import KILL_SHARE, mutation_score
from habilis.forge.checks.tables import only_knows
from habilis.forge.checks.verification import passes_when_wrong, verify
from habilis.forge.contract import Candidate
from habilis.forge.library.seed_tools import seeds
from habilis.tools.tool_names import check_name
from tests.cases import each_case

MUTANTS = 15
ALL = list(seeds().values())


@pytest.fixture(params=ALL, ids=lambda seed: seed.name)
def seed(request: pytest.FixtureRequest) -> Candidate:
    return request.param


def _public_functions(seed: Candidate) -> list[ast.FunctionDef]:
    return [
        node
        for node in parse_module(seed.code).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith('_')
    ]


def test_there_are_enough_seeds_to_be_useful() -> None:
    assert len(ALL) >= 25


async def test_a_seed_passes_its_tests(seed: Candidate) -> None:
    verification = await verify(seed)
    assert verification.ok, verification.report
    assert len(verification.tests) >= 4


async def test_the_tests_of_a_seed_fail_on_wrong_functions_and_its_code_is_no_table_of_them(
    seed: Candidate,
) -> None:
    assert not await passes_when_wrong(seed)
    assert not await only_knows(seed, calls_in(seed.tests, seed.name))


async def test_the_tests_of_a_seed_notice_wrong_variants(seed: Candidate) -> None:
    seconds = (await verify(seed)).seconds
    score = await mutation_score(seed, seconds=seconds, limit=MUTANTS)
    assert score.share >= KILL_SHARE, score.survivors


@each_case('seed', ALL)
def test_the_name_of_a_seed_is_valid(seed: Candidate) -> None:
    assert check_name(seed.name) == seed.name


@each_case('seed', ALL)
def test_a_seed_has_one_public_function_with_the_name_of_its_page(seed: Candidate) -> None:
    assert [function.name for function in _public_functions(seed)] == [seed.name]


@each_case('seed', ALL)
def test_a_seed_has_type_hints_for_all_parameters_and_the_result(seed: Candidate) -> None:
    [function] = _public_functions(seed)
    given = function.args
    optional = [one for one in (given.vararg, given.kwarg) if one is not None]
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, *optional]
    assert [parameter.arg for parameter in parameters if parameter.annotation is None] == []
    assert function.returns is not None


@each_case('seed', ALL)
def test_the_docstring_of_a_seed_begins_with_a_sentence(seed: Candidate) -> None:
    [function] = _public_functions(seed)
    summary = (ast.get_docstring(function) or '').partition('\n')[0]
    assert summary.endswith('.')


@each_case('seed', ALL)
def test_a_seed_imports_the_standard_library_only(seed: Candidate) -> None:
    imported = set[str]()
    for node in ast.walk(parse_module(seed.code)):
        if isinstance(node, ast.Import):
            imported |= {name.name.partition('.')[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or '').partition('.')[0])
    assert imported <= sys.stdlib_module_names
