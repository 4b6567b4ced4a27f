"""Reviews code before it is kept: what it uses, and what it does on generated inputs.

For tidiness, and so that code cannot look at its tests. The sandbox is what protects the host.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from habilis.core.syntax import parse_module
from habilis.forge.checks.properties import check_properties, is_unsteady
from habilis.forge.checks.verification import verify_all
from habilis.forge.contract import TESTED_MODULE, Candidate, Findings, Verification
from habilis.sandbox.code_rules import CodeRules, CodeRulesError, check

_RULES = CodeRules(
    calls=True,
    strings=True,
    allow=('base64', 'binascii', 'codecs', 'bytes.fromhex', 'bytearray.fromhex', 'zlib', 'gzip', 'bz2', 'lzma'),
)
"""What code of any sandbox may be refused for. Decoding is what some tools are for."""

_HIDDEN = frozenset(
    {'inspect', 'gc', 'traceback', 'builtins', 'pytest', 'habilis', TESTED_MODULE, f'test_{TESTED_MODULE}'}
)
"""Modules that could look at the tests, and that a function has no other use for."""

_HIDDEN_NAMES = frozenset({'globals', 'locals', 'vars', 'breakpoint', 'input'})
_HIDDEN_ATTRIBUTES = frozenset({'_getframe', '_current_frames', 'modules', 'settrace', 'setprofile'})
_FILES = frozenset({'pathlib', 'shutil', 'tempfile', 'glob'})
_NETWORK = frozenset({'socket', 'urllib', 'http', 'ftplib', 'smtplib', 'ssl', 'requests', 'httpx', 'aiohttp'})


async def review(candidate: Candidate) -> Findings:
    """What is wrong with a candidate that passes its tests, and what users should know about it."""
    if candidate.language != 'python':
        return Findings()  # it has no modules, files, network or processes to look for
    found = review_code(candidate.code)
    return found if found.refused else found + await check_properties(candidate)


async def verify_reviewed(candidates: Sequence[Candidate]) -> list[Verification]:
    """Verify several candidates; those that pass are reviewed, and what is refused counts as a failure."""
    results = await verify_all(candidates)
    for index, (candidate, result) in enumerate(zip(candidates, results, strict=True)):
        if result.ok:
            refused = (await review(candidate)).refused
            results[index] = replace(result, error='\n'.join(refused))
    return results


def review_code(code: str) -> Findings:
    """What is found without running the code."""
    tree = parse_module(code)
    refused = next(_refused(tree), '')
    return Findings(refused=(refused,) if refused else (), noted=tuple(_noted(tree, code)))


def _refused(tree: ast.Module) -> Iterator[str]:
    try:
        check(tree, _RULES)
    except CodeRulesError as error:
        yield f'line {error.line}: {str(error).partition(" To allow it")[0]}'
    if bad := sorted(_imports(tree) & _HIDDEN):
        yield f'the code imports {bad[0]}, which a tool has no use for'
    imported = _bound_imports(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in imported:
                yield f'line {node.lineno}: the code changes {name}, which its tests use too'
            case ast.Call(func=ast.Name(id='setattr' | 'delattr'), args=[ast.Name(id=name), *_]) if name in imported:
                yield f'line {node.lineno}: the code changes {name}, which its tests use too'
            case ast.Name(id=name) if name in _HIDDEN_NAMES:
                yield f'line {node.lineno}: the code uses {name}, which a tool has no use for'
            case ast.Attribute(value=ast.Name(id='sys'), attr=name) if name in _HIDDEN_ATTRIBUTES:
                yield f'line {node.lineno}: the code uses sys.{name}, which a tool has no use for'
            case ast.Global():
                yield f'line {node.lineno}: the code changes global variables: a second call would give another result'
            case _:
                continue


def _noted(tree: ast.Module, code: str) -> Iterator[str]:
    imports = _imports(tree)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    if is_unsteady(code):
        yield 'uses chance or the clock, so that two calls may differ'
    if imports & _FILES or 'open' in called:
        yield 'uses files: the sandbox of a tool has none of the host'
    if imports & _NETWORK:
        yield 'uses the network, which the sandbox of a tool does not have'
    if 'print' in called:
        yield 'prints, which nobody sees: only its result counts'


def _imports(tree: ast.Module) -> set[str]:
    nodes = list(ast.walk(tree))
    plain: Iterable[str] = (alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names)
    whole = {name.partition('.')[0] for name in plain}
    return whole | {(node.module or '').partition('.')[0] for node in nodes if isinstance(node, ast.ImportFrom)}


def _bound_imports(tree: ast.Module) -> set[str]:
    """The names that imports bind."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {(alias.asname or alias.name).partition('.')[0] for node in nodes for alias in node.names}
