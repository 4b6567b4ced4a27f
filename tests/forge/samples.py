"""Small tools for the tests."""

from habilis.forge.contract import Candidate


def double(name: str = 'double', *, factor: int = 2, summary: str = 'Twice a number.') -> Candidate:
    """A tool that multiplies."""
    code = f'def {name}(number: int) -> int:\n    """{summary}"""\n    return number * {factor}\n'
    tests = f'from tool import {name}\n\n\ndef test_three() -> None:\n    assert {name}(3) == {3 * factor}\n'
    return Candidate(name=name, code=code, tests=tests)


def fourfold(used: Candidate | None = None) -> Candidate:
    """A tool that uses `double`."""
    code = (
        'from library import double\n\n\ndef fourfold(number: int) -> int:\n    """Four times a number."""\n'
        '    return double(double(number))\n'
    )
    tests = 'from tool import fourfold\n\n\ndef test_three() -> None:\n    assert fourfold(3) == 12\n'
    return Candidate(name='fourfold', code=code, tests=tests, uses={'double': used or double()})


def tool(name: str, body: str, tests: str = '', *, head: str = '(number: int) -> int') -> Candidate:
    """A tool with this body."""
    code = f'def {name}{head}:\n    """Does something."""\n    {body}\n'
    return Candidate(name=name, code=code, tests=tests or f'from tool import {name}\n\n\ndef test_it() -> None: ...\n')
