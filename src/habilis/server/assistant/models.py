"""What the API of the assistant takes and returns."""

import base64
import binascii
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.models.files import File, Image
from habilis.server.models import Strict
from habilis.server.operations import BadRequest


class CamelModel(BaseModel):
    """A request of a protocol whose names are in camelCase. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel)


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
    """Where to go on in another way."""

    before: str | int
    """The path of a step, or the number of a record."""


class RunModel(BaseModel):
    """A run as it is listed."""

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


class QuestionModel(BaseModel):
    """What a run waits for."""

    path: str
    request: object


class RunDetails(RunModel):
    """A run, and what it waits for."""

    questions: list[QuestionModel]


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


class ProblemModel(BaseModel):
    """Why a request failed, as in RFC 9457."""

    type: str = 'about:blank'
    title: str
    status: int
    detail: str
