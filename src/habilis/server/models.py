"""What is sent over HTTP, as pydantic models. Requests are checked by them; the OpenAPI document is made of them."""

import re
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_BYTES = 4 << 20
MAX_PARTS = 20_000
"""Limits of JSON in a request: while it is parsed, nobody else is served. Larger data goes in as a file."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
M = TypeVar('M', bound=BaseModel)


def check_json(body: bytes) -> None:
    """Raise `ValueError` if JSON in a request is too large to be parsed while others wait."""
    if len(body) > MAX_BYTES:
        msg = f'JSON of a request may have {MAX_BYTES:,} bytes; send larger data as a file'
        raise ValueError(msg)
    parts = end = 0
    for string in _STRING.finditer(body):
        parts += 1 + _separators(body, end, string.start())
        end = string.end()
        if parts > MAX_PARTS:
            break
    if parts + _separators(body, end, len(body)) > MAX_PARTS:
        msg = f'JSON of a request may have {MAX_PARTS:,} parts; send larger data as a file'
        raise ValueError(msg)


def _separators(body: bytes, start: int, end: int) -> int:
    return sum(body.count(mark, start, end) for mark in (b'[', b'{', b','))


def parse_request(model: type[M], body: bytes) -> M:
    """The body of a request. Raises `ValueError`, which says in one line what is wrong."""
    check_json(body)
    try:
        return model.model_validate_json(body or b'{}')
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = '.'.join(map(str, first['loc']))
        msg = f'{place}: {first["msg"]}' if place else first['msg']
        raise ValueError(msg) from None


class Strict(BaseModel):
    """A request. Unknown fields are refused."""

    model_config = ConfigDict(extra='forbid')


class LimitsModel(Strict):
    """Limits of each cell; what is left out has the default. The server may allow less."""

    seconds: float = Field(30.0, gt=0)
    memory_mb: int = Field(256, ge=48, le=4096)
    output_bytes: int = Field(1_000_000, ge=0)
    calls: int = Field(1000, ge=0)
    cpu: float = Field(1.0, gt=0, le=1)


class CreateRequest(Strict):
    """A new sandbox. It has a workspace of its own."""

    limits: LimitsModel = Field(default_factory=lambda: LimitsModel.model_validate({}))
    variables: dict[str, object] = {}
    env: dict[str, str] = {}


class ExecuteRequest(Strict):
    """A cell to run."""

    code: str
    seconds: float | None = Field(None, gt=0)
    id: str | None = Field(None, max_length=100)
    """Names the request: sent again with the same id, it gets the same answer, and the cell is not run again."""

    stream: bool = False
    """Answer with Server-Sent Events: `stdout` and `stderr` as the cell writes them, and then its `result`."""


class SandboxInfo(BaseModel):
    """A sandbox."""

    id: str
    kind: str
    """`sandbox`; `guest` for one whose session is on the client; `e2b` for one of E2B's protocol."""

    created: float
    """Seconds since 1970."""

    busy: bool


class SandboxList(BaseModel):
    """The sandboxes of a key."""

    sandboxes: list[SandboxInfo]


class CellModel(BaseModel):
    """Result of a cell. Values that JSON has no type for are `{"$": type, "v": …}`."""

    ok: bool
    value: object
    text: str | None
    stdout: str
    stderr: str
    error: dict[str, object] | None
    seconds: float
    files: list[dict[str, object]]
    calls: list[dict[str, object]]
    displays: list[dict[str, object]]
    lost: list[str]
    rolled_back: bool
    waited: float


class FileList(BaseModel):
    """The files of a workspace."""

    files: list[str]


class Health(BaseModel):
    """The state of the service."""

    status: str
    version: str
    backend: str
    sandboxes: int


class Done(BaseModel):
    """The operation succeeded."""

    ok: bool = True


class ErrorModel(BaseModel):
    """Why a request failed."""

    error: str
