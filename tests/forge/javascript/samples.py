"""Small tools in JavaScript for the tests."""

from habilis.forge.contract import Candidate

TESTS = """import {{ {name} }} from './tool.js';

function test_three() {{
  assert.equal({name}(3), {expected});
}}
"""


def double(name: str = 'double', *, factor: int = 2) -> Candidate:
    """A tool that multiplies."""
    code = f"""/**
 * Twice a number.
 * @param {{number}} number
 * @returns {{number}}
 */
export function {name}(number) {{
  return number * {factor};
}}
"""
    tests = TESTS.format(name=name, expected=3 * factor)
    return Candidate(name=name, code=code, tests=tests, language='javascript')


def fourfold(used: Candidate | None = None) -> Candidate:
    """A tool that uses `double`."""
    code = """import { double } from 'library';

/**
 * Four times a number.
 * @param {number} number
 * @returns {number}
 */
export function fourfold(number) {
  return double(double(number));
}
"""
    tests = TESTS.format(name='fourfold', expected=12)
    return Candidate(name='fourfold', code=code, tests=tests, uses={'double': used or double()}, language='javascript')


def tool(name: str, body: str, *, before: str = '', tests: str = '') -> Candidate:
    """A tool of one argument with this body."""
    code = f"""{before}
/**
 * Does something.
 * @param {{any}} value
 * @returns {{any}}
 */
export function {name}(value) {{
  {body}
}}
"""
    return Candidate(name=name, code=code, tests=tests or TESTS.format(name=name, expected=6), language='javascript')
