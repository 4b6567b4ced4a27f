"""What the host sends to the kernel. For type checkers: nothing imports it at run time."""

from typing import Any, NotRequired, TypedDict

from habilis.core.codec import Json


class ToolDescription(TypedDict):
    """A tool of the host."""

    name: str
    doc: NotRequired[str]
    signature: NotRequired[str]
    parameters: NotRequired[list[str]]
    is_async: NotRequired[bool]
    is_reserved: NotRequired[bool]
    ends_cell: NotRequired[bool]


class Setup(TypedDict, total=False):
    """What a new sandbox has. It comes with the first request."""

    env: dict[str, str]
    paths: list[str]
    cwd: str
    network: bool
    write_advice: str
    tools: list[ToolDescription]
    variables: dict[str, Json]


class Request(TypedDict):
    """A request. It has the fields of its operation."""

    op: str
    setup: NotRequired[Setup]
    code: str
    code_rules: NotRequired[Json]
    describe: NotRequired[bool]
    python: str
    state: str
    cells: NotRequired[int]
    names: list[str] | None
    values: dict[str, Json]
    tools: list[ToolDescription]
    work: dict[str, Any]
