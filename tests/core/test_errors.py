"""One tree of errors: whoever catches the root catches them all."""

import inspect

from habilis.core import errors
from habilis.core.errors import (
    AgentError,
    DocumentError,
    ForgeError,
    HabilisError,
    JournalError,
    ModelError,
    RememberError,
    SandboxError,
    SettingsError,
    SkillError,
    ToolCallError,
    ToolDefinitionError,
)
from tests.cases import each_case

BRANCHES = (
    AgentError,
    DocumentError,
    ForgeError,
    JournalError,
    ModelError,
    RememberError,
    SandboxError,
    SettingsError,
    SkillError,
    ToolCallError,
    ToolDefinitionError,
)
"""Each is the root of what one concern raises; nothing else hangs on the tree's own root."""


def every_error() -> list[type[Exception]]:
    return [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Exception)]


@each_case('error', every_error())
def test_every_error_is_of_the_tree_and_says_what_it_means(error: type[Exception]) -> None:
    assert issubclass(error, HabilisError)
    assert error.__doc__
    if error is not HabilisError:
        assert issubclass(error, BRANCHES)
