"""The languages that tools are built in: how their code is asked for, and how it becomes a candidate.

Specification, examples and tests of a build are Python for all of them.
"""

import json
from collections.abc import Mapping

from habilis.core.errors import ForgeError
from habilis.forge.build.requests import code_block, functions_in, prompt
from habilis.forge.contract import Language
from habilis.forge.javascript.translation import javascript_code, javascript_module, javascript_stub, javascript_tests


def check_language(stub: str, language: Language) -> None:
    """Raises `ForgeError` if the function cannot be written in the language."""
    if language == 'javascript':
        javascript_stub(stub)


def implementation_prompt(stub: str, language: Language, **values: str) -> str:
    """The request for an implementation."""
    if language == 'javascript':
        return prompt('implement_javascript').format(stub=javascript_stub(stub), **values)
    return prompt('implement').format(stub=stub, **values)


def read_code(reply: str, name: str, stub: str, language: Language) -> str:
    """The code of a reply. Raises `ForgeError` if it has no such function."""
    code = code_block(reply)
    if language == 'javascript':
        return javascript_code(code, stub)
    if name not in functions_in(code):
        msg = f'there is no function {name} in your reply'
        raise ForgeError(msg)
    return code


def no_code(name: str, reason: str, language: Language) -> str:
    """Code that fails all tests with this reason."""
    if language == 'javascript':
        return f'export function {name}() {{\n  throw new Error({json.dumps(reason)});\n}}\n'
    return f'def {name}(*args):\n    raise NotImplementedError({reason!r})\n'


def usable_tests(stub: str, tests: Mapping[str, str], language: Language) -> dict[str, str]:
    """Those of the tests that can be run in the language."""
    known = javascript_tests(stub, tests) if language == 'javascript' else tests
    return {name: source for name, source in tests.items() if name in known}


def tests_in(stub: str, tests: str, language: Language) -> str:
    """A module of tests in the language."""
    return javascript_module(stub, functions_in(tests)) if language == 'javascript' else tests
