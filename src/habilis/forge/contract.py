"""What the forge makes and keeps. Read this first.

A *tool* of the library is one function, of Python or JavaScript, with its tests, kept under version numbers. A
*candidate* is code that wants to become one: it is *verified* in a fresh sandbox, and its tests must prove that they
can fail.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from habilis.core.errors import ForgeError

FORMAT = 1
"""Version of `tool.json`."""

TESTED_MODULE = 'tool'
"""The module that tests import the function from."""

LIBRARY_MODULE = 'library'
"""The module that tools import other tools of the library from."""

Language = Literal['python', 'javascript']

SOURCE_FILES: Mapping[Language, tuple[str, str]] = {
    'python': ('tool.py', 'test_tool.py'),
    'javascript': ('tool.js', 'test_tool.js'),
}
"""Names of the files with the code and with the tests, by language."""


class Refused(ForgeError):
    """No tool was built; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Source of a tool and of its tests."""

    name: str
    code: str
    """Module with the function `name`."""

    tests: str
    """Module of `def test_…()`, which imports the function from `tool`."""

    packages: tuple[str, ...] = ()
    uses: Mapping[str, 'Candidate'] = field(default_factory=dict[str, 'Candidate'])
    """The library tools that the code imports from `library`, with what they use themselves."""

    language: Language = 'python'


@dataclass(frozen=True, kw_only=True)
class TestOutcome:
    """Result of one test."""

    __test__ = False  # not a test of pytest

    name: str
    error: str = ''
    """The failing line and the values in it; empty if the test passed."""

    @property
    def ok(self) -> bool:
        """Whether the test passed."""
        return not self.error


def require_python(candidate: Candidate, what: str) -> None:
    """Raise `ForgeError` for a tool in another language, where `what` is done with Python only."""
    if candidate.language != 'python':
        msg = f'{candidate.name} is written in {candidate.language}; only tools in Python can be {what}'
        raise ForgeError(msg)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Result of the tests of one candidate."""

    tests: tuple[TestOutcome, ...] = ()
    error: str = ''
    """Why the tests did not run to their end: a syntax error, a limit; empty if they did."""

    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether there are tests, and all passed."""
        return not self.error and bool(self.tests) and all(test.ok for test in self.tests)

    @property
    def report(self) -> str:
        """What failed, for people and models."""
        failed = [f'{test.name}: {test.error}' for test in self.tests if not test.ok]
        if not self.tests and not self.error:
            failed = ['there are no tests']
        return '\n'.join([*failed, *([self.error] if self.error else [])])


@dataclass(frozen=True, kw_only=True)
class MutationScore:
    """How many wrong variants of the code the tests notice."""

    killed: int = 0
    total: int = 0
    survivors: tuple[str, ...] = ()
    """The changes that no test noticed: `line 3: a < b → a <= b`."""

    calls: tuple[str, ...] = ()
    """Calls that would notice some of these changes, if too few are noticed."""

    @property
    def share(self) -> float:
        """Share of the variants that were noticed; 1 if there is nothing to vary."""
        return self.killed / self.total if self.total else 1.0


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a review finds in code that passes its tests."""

    refused: tuple[str, ...] = ()
    """Why the code is not kept."""

    noted: tuple[str, ...] = ()
    """What users should know; the code is kept."""

    def __add__(self, other: 'Findings') -> 'Findings':
        return Findings(refused=self.refused + other.refused, noted=self.noted + other.noted)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """`tool.json`: everything about one version but its source."""

    name: str
    version: int
    summary: str
    signature: str
    created: datetime
    origin: str = ''
    """Who made it: `seed`, `user`, or the name of a model."""

    request: str = ''
    """The request that it was built for."""

    context: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sources of the reference material that it was built after, with the SHA-256 of what was quoted."""

    packages: tuple[str, ...] = ()
    uses: Mapping[str, int] = field(default_factory=dict[str, int])
    """Versions of the library tools that it imports."""

    tags: tuple[str, ...] = ()
    tests: int = 0
    mutants: int = 0
    killed: int = 0
    findings: tuple[str, ...] = ()
    """What the review noted: `first([]) raises IndexError`."""

    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    """SHA-256 of the code and of the tests, to notice edits by hand."""

    note: str = ''
    """Why it replaced the version before it."""

    language: Language = 'python'
    format: int = FORMAT


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A wrong variant of a function, which its tests should notice."""

    change: str
    """What differs: `line 3: a < b → a <= b`."""

    code: str
    boundary: str = ''
    """For `<`, `<=`, `>`, `>=`: code that fails where both sides are equal, which is where the variant differs."""
