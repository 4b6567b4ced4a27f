"""What `Agent` and its runs are given, looked at before anything is begun: a mistake is named where it was made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import cast

from habilis.agent.contract import RunLimits
from habilis.agent.context.truncation import Bounds
from habilis.core.errors import AgentError
from habilis.models.config import ModelConfig
from habilis.models.contract import Message, Model
from habilis.sandbox import Sandbox
from habilis.tools.validation import describe_value

_Kind = tuple[type, ...] | Callable[[object], bool]


def _texts(value: object) -> bool:
    items = cast('Mapping[object, object]', value).items() if isinstance(value, Mapping) else [(None, None)]
    return all(isinstance(name, str) and isinstance(text, str) for name, text in items)


def _messages(value: object) -> bool:
    items = cast('Sequence[object]', value) if isinstance(value, Sequence) else [None]
    return all(isinstance(message, Message) for message in items)


_TEXT: tuple[_Kind, str] = ((str,), 'text')
_DATA: tuple[_Kind, str] = ((Mapping,), 'a dict of values by name')
_FUNCTIONS: tuple[_Kind, str] = ((Iterable,), 'a list of functions')

_KINDS: Mapping[str, tuple[_Kind, str]] = {
    'task': _TEXT,
    'artifacts': (_texts, 'a dict of texts by name'),
    'gates': _FUNCTIONS,
    'history': (_messages, 'a list of messages, such as `Result.messages`'),
    'hooks': _FUNCTIONS,
    'instructions': _TEXT,
    'limits': ((RunLimits,), '`RunLimits(…)`'),
    'meta': _DATA,
    'model': ((str, ModelConfig, Model), 'a name such as `provider:model`, a `ModelConfig` or a `Model`'),
    'name': _TEXT,
    'observations': ((Bounds,), '`Bounds(…)`'),
    'run_id': _TEXT,
    'sandbox': ((str, Sandbox, Mapping), 'the name of a backend, a `Sandbox`, or several by name'),
    'session': _TEXT,
    'summary': _TEXT,
    'tools': _FUNCTIONS,
    'user': _TEXT,
    'variables': _DATA,
}
"""What an argument must be, and that in words."""

_LIMITS = tuple(field.name for field in fields(RunLimits))


def check_task(task: object) -> None:
    """Refuse what is no task."""
    if not isinstance(task, str):
        msg = f'the task must be text, not {describe_value(task)}'
        raise TypeError(msg)
    if not task.strip():
        msg = 'the task is empty: say what to do'
        raise AgentError(msg)


def check_kinds(where: str, given: Mapping[str, object]) -> None:
    """Refuse arguments that are something else than they must be. None is as if they were not given."""
    for name, (kind, words) in _KINDS.items():
        value = given.get(name)
        if value is not None and not (isinstance(value, kind) if isinstance(kind, tuple) else kind(value)):
            msg = f'{where}: {name} must be {words}, not {describe_value(value)}'
            raise TypeError(msg)


def check_names(where: str, given: Iterable[str], known: Iterable[str], elsewhere: Mapping[str, Iterable[str]]) -> None:
    """Refuse a keyword that is not known: a limit that is mistyped would be no limit.

    `elsewhere` are the keywords of others that it may have been meant for.
    """
    known = list(known)
    for name in given:
        if name in known:
            continue
        home = next((other for other, names in elsewhere.items() if name in names), None)
        if home is not None:
            hint = f': it is an option of {home}'
        elif (limit := name.removeprefix('max_')) in _LIMITS:
            hint = f': pass limits=RunLimits({limit}=…)'
        elif near := get_close_matches(name, known, n=1, cutoff=0.5):
            hint = f'; did you mean {near[0]!r}?'
        else:
            hint = f'; it has {", ".join(known)}'
        msg = f'{where} has no option {name!r}{hint}'
        raise TypeError(msg)
