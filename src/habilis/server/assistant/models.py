"""What the API of the assistant takes and returns."""

import base64
import binascii
from datetime import date
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.memory.contract import FactKind, TaskState
from habilis.models.files import File, Image
from habilis.server.models import Strict
from habilis.server.operations import BadRequest


class CamelModel(BaseModel):
    """A request of a protocol whose names are in camelCase. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel)


def json_response(model: BaseModel, status: int = 200) -> Response:
    """A model as the answer to a request."""
    return Response(model.model_dump_json(), status, media_type='application/json')


class SentFile(Strict):
    """A file that comes with a message."""

    name: str = Field(max_length=255)
    data: str
    """The content in base64."""

    def file(self) -> File:
        """The file, or the image. Raises `BadRequest`."""
        return decode_file(self.data, name=self.name)


def decode_file(text: str, *, name: str = '', media_type: str = '') -> File:
    """The file, or the image, that base64 stands for. Raises `BadRequest`."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        msg = f'the data of {name or "a file"!r} is not base64'
        raise BadRequest(msg) from None
    file = File(data, name=name or None, media_type=media_type or None)
    return Image(data, name=name or None) if file.media_type.startswith('image/') else file


def file_at(address: str, name: str = '') -> File:
    """The file of a `data:` address. Raises `BadRequest`."""
    head, _, data = address.partition(',')
    if not head.startswith('data:') or not head.endswith(';base64'):
        msg = 'send files and images as data:TYPE;base64,…; nothing is fetched from other addresses'
        raise BadRequest(msg)
    return decode_file(data, name=name, media_type=head[5:-7])


class LoginRequest(Strict):
    """A browser shows its token."""

    token: str = Field(max_length=200)


class TurnRequest(Strict):
    """A message of the user."""

    message: str = Field(min_length=1, max_length=1_000_000)
    files: list[SentFile] = Field(default_factory=list[SentFile], max_length=50)
    model: str = Field(default='', max_length=200)
    """One of those that `GET /api/settings` offers; empty: as before."""

    mode: str = Field(default='', max_length=20)
    """The permission mode from this turn on; empty: as before."""


class AnswerRequest(Strict):
    """The answer to what a run waits for."""

    path: str | None = None
    """Which question; not needed if there is one."""

    answer: object
    """Text for a question; true, false or an object with `approved`, `reason` and `scope` for an approval."""


def read_answer(given: object) -> Json | Approval:
    """The answer to a question, from a request. Raises `ValueError`."""
    answer = cast('Json', given)  # it was JSON
    is_approval = isinstance(answer, bool) or (isinstance(answer, dict) and 'approved' in answer)
    return Approval.from_json(answer) if is_approval else answer


class ForkRequest(Strict):
    """Where to go on in another way: before a step, or after one that is edited."""

    before: str | int | None = None
    """The path of a step, or the number of a record."""

    edit: str | None = None
    """The path of an agent, of a request to the model or of a call: its task, code or result is the `value` then."""

    value: object = None
    message: str = Field(default='', max_length=1_000_000)
    """What the user says there."""

    model: str = Field(default='', max_length=200)
    """Another model than that of the server, by name."""


class RunModel(BaseModel):
    """A run as it is listed, with what it took so far."""

    run: str
    state: str
    kind: Literal['agent', 'flow']
    name: str
    title: str
    session: str
    parent: str
    error: str
    created: float
    updated: float
    steps: int
    tokens: int
    cost: float | None
    seconds: float
    """Of models and code."""


class QuestionModel(BaseModel):
    """What a run waits for."""

    path: str
    request: object


class RunDetails(RunModel):
    """A run, and what it waits for."""

    questions: list[QuestionModel]


class StepComparison(BaseModel):
    """One step in two runs: its input and result as text; null where a run does not have it."""

    path: str
    left: str | None
    right: str | None
    is_equal: bool


class RunComparison(BaseModel):
    """The steps of two runs, by path."""

    steps: list[StepComparison]


class RunList(BaseModel):
    """Runs, the newest first."""

    runs: list[RunModel]


class ConversationModel(BaseModel):
    """A conversation as it is listed."""

    id: str
    title: str
    """The first message."""

    state: str
    """That of the last turn."""

    turns: int
    updated: float


class ConversationList(BaseModel):
    """Conversations, the newest first."""

    conversations: list[ConversationModel]


class NewConversation(BaseModel):
    """A conversation that has begun."""

    id: str


class TurnModel(BaseModel):
    """A turn that has begun, or goes on."""

    run: str
    session: str


class StatusModel(BaseModel):
    """Who is served, and by what."""

    user: str
    version: str
    model: str


class OfferedModel(BaseModel):
    """A language model."""

    name: str
    """To choose it by: an alias of the settings, or `provider:model`."""

    model: str
    ready: bool
    why: str
    """Where it comes from, or what it lacks."""


class MissingModel(BaseModel):
    """Something that this server could have."""

    what: str
    how: str
    """The command that adds it."""


class SettingsModel(BaseModel):
    """What a person sees and chooses from. It has no keys."""

    model: str
    """The model of the next turn."""

    is_scripted: bool
    """Whether its replies come from a script."""

    models: list[OfferedModel]
    mode: str
    modes: list[str]
    examples: list[str]
    """Messages that show something."""

    missing: list[MissingModel]


class ProblemModel(BaseModel):
    """Why a request failed, as in RFC 9457."""

    type: str = 'about:blank'
    title: str
    status: int
    detail: str


# Memory, tasks, tools, files ------------------------------------------------------------------------------------------


class EntryModel(BaseModel):
    """A fact, or a turn of a conversation, in the memory."""

    id: str
    kind: str
    """The kind of a fact, or who said the turn."""

    text: str
    time: float
    session: str = ''
    why: str = ''
    """Why the search found it."""


class EntryList(BaseModel):
    """What the memory has."""

    entries: list[EntryModel]


class FactRequest(Strict):
    """A fact to remember."""

    text: str = Field(min_length=1, max_length=2000)
    kind: FactKind = 'fact'
    replaces: str | None = None
    """Id of a fact that is no longer true."""


class TaskModel(BaseModel):
    """Something to do."""

    number: int
    title: str
    state: TaskState
    due: date | None
    notes: str


class TaskList(BaseModel):
    """Tasks by due date and number."""

    tasks: list[TaskModel]


class TaskRequest(Strict):
    """A task to add."""

    title: str = Field(min_length=1, max_length=1000)
    due: date | None = None


class TaskChange(Strict):
    """What changes in a task; null: as before."""

    state: TaskState | None = None
    title: str | None = Field(default=None, min_length=1, max_length=1000)
    due: date | None = None


class ToolModel(BaseModel):
    """A tool of the library as it is listed."""

    name: str
    version: int
    summary: str
    signature: str


class ToolList(BaseModel):
    """Tools of the library."""

    tools: list[ToolModel]


class UsageModel(BaseModel):
    """Calls of one version of a tool."""

    version: int
    calls: int
    failed: int
    seconds: float
    last: str
    """Time of the last call, UTC."""


class ToolDetails(ToolModel):
    """A version of a tool, with its source."""

    versions: list[int]
    current: int
    """The version in use."""

    usage: list[UsageModel]
    origin: str
    request: str
    language: str
    code: str
    tests: str
    test_count: int
    findings: list[str]


class ToolTest(BaseModel):
    """How one test of a tool ended."""

    name: str
    ok: bool
    error: str


class TestedTool(BaseModel):
    """How the tests of a tool ended."""

    ok: bool
    tests: list[ToolTest]
    error: str
    """Why they did not run to their end."""

    seconds: float


class ToolEdit(Strict):
    """The next version of a tool."""

    code: str = Field(max_length=200_000)
    tests: str | None = Field(default=None, max_length=200_000)
    """None: those of the version before."""

    note: str = Field(default='', max_length=1000)
    """Why it may fail the tests of the version before."""


class VersionChoice(Strict):
    """A version of a tool."""

    version: int


class FileModel(BaseModel):
    """A file of a workspace."""

    path: str
    size: int


class WorkspaceFiles(BaseModel):
    """The files of the workspace of a conversation."""

    files: list[FileModel]
