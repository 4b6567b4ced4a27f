"""What the journal holds of an agent's run: names of its steps, the dataclasses recorded, and their codecs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from habilis.agent.contract import RunLimits
from habilis.agent.durable.codecs import DataCodec
from habilis.agent.policies.contract import Verdict
from habilis.journal.index import Index, PathRecords, parent_of
from habilis.models.contract import Message, Reply
from habilis.tools.grants import CallGrant

ASK = 'ask'
"""Name of a step that asks the model."""

CELL = 'cell'
CODE = 'code'
"""Field of the `opened` record of a cell, which is written with its first tool call."""

MAX_CODE_LENGTH = 10_000
"""Maximum characters of code in that record. The outcome of the cell has all of it."""

COMPACTION = 'compaction'
"""Name of a step that asks the model for a summary of the earlier steps."""

VERDICT = 'verdict'
VALIDATED = 'validated'
"""Name of a step that calls the output validators."""

INSTRUCTIONS = 'instructions'
"""Field of a note: the text that functions of the instructions returned for this run."""

NO_STOP = 'no_stop'
"""Field of a note: the number of a step that must not end the run."""

RESUMED = 'resumed'
"""Field of a note: the run was resumed."""

PROMPT = 'prompt'
"""Field of a note: the prompt that the model got."""

MESSAGES = 'messages'
"""Field of a note: the messages of a run of a session that ended without an answer."""

FILES = 'files'
"""Field of a note: the files of the workspace were stored."""

APPROVE = 'approve '
"""Prefix of the name of a question about a tool call."""

CALL_ID, ASKED = 'id', 'asked'
"""Fields of the first record of a tool call: its number in the run, and the path of the question about it that a person
was asked."""


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """An image or a file that was given with a task."""

    name: str
    media_type: str
    digest: str
    is_image: bool = False
    is_earlier: bool = False
    """It came with an earlier task of the conversation."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The part of a `RunSpec` that is recorded, as it is."""

    task: str
    memory: str = ''
    """What a memory had for the task."""

    model: str = ''
    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    artifacts: Mapping[str, str] = field(default_factory=dict[str, str])
    history: tuple[Message, ...] = ()
    limits: RunLimits | None = None
    """None for the defaults, in records of older versions."""

    system: str = ''
    """See `Prompt`. Older versions recorded it here."""

    asked: str = ''
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    """Plain data that the caller keeps with the run."""

    files: tuple[FileRecord, ...] = ()
    """Images and files of the task, and of the conversation before it. Their data is attached to the record."""

    names: tuple[str, ...] | None = ()
    """Variables of the conversation before it; None if they are not known. Their values are attached to the record."""

    own_tools: tuple[str, ...] = ()
    """Names of the tools that only this run has. Whoever resumes it passes them again."""

    library: tuple[str, ...] = ()
    """Names of the tools of the library that were found for the task."""

    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    """Hashes of the skills by name. A resumed run has these skills, and no others."""

    own_output: str = ''
    """Name of the output type that only this run has; likewise."""

    deps_name: str = ''
    """Name of the type of the dependencies of the run, which are not recorded; likewise."""

    approved: tuple[CallGrant, ...] = ()
    """What a person has approved for the rest of the conversation, before this run."""

    program: str = ''
    """The agent as `module:name`, if it is a global variable of the user's program."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What the model got, for readers of the record; a resumed run builds its own, with the same `situation`."""

    system: str
    asked: str
    """The first message."""

    situation: str = ''
    """What the first message says of the date and the workspace: both may have changed when the run is resumed."""

    imports: tuple[str, ...] = ()
    """Import statements that the sandbox ran before the code of the model."""


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Run resumed after N steps."""

    after: int
    answer: str | None = None
    limits: RunLimits | None = None


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The files of the workspace after a step; step 0 is the start of the run."""

    step: int
    workspace: str
    """The folder."""

    commit: str = ''
    """Name of the state in the history of the folder; empty if the files could not be stored."""

    too_large: tuple[str, ...] = ()
    """Files that were left out."""

    problem: str = ''
    """Why they could not be stored."""


CHECKPOINT_CODEC = DataCodec(Checkpoint, what='a checkpoint')
INPUTS_CODEC = DataCodec(Inputs, what='the inputs of a run')
PROMPT_CODEC = DataCodec(Prompt, what='a prompt')
REPLY_CODEC = DataCodec(Reply, what='a reply')
RESUMED_CODEC = DataCodec(Resumed, what='a note')
VERDICT_CODEC = DataCodec(Verdict, what='a verdict')


def code_of(entry: PathRecords) -> str:
    """The code of a cell that has called tools; empty for other entries."""
    value = entry.opened.value if entry.opened is not None else None
    return str(value.get(CODE, '')) if isinstance(value, dict) else ''


def code_around(index: Index, path: str) -> str:
    """The code of the cell that this path is in; empty if it is in none."""
    while path := parent_of(path):
        entry = index.find(path)
        if entry is not None and (code := code_of(entry)):
            return code
    return ''
