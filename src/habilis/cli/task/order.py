"""What was ordered at the command line: the task, the data that came with it, and how to do it."""

import os
import select
import shlex
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict, Unpack, cast

import typer

from habilis.core.errors import JournalError, SettingsError
from habilis.core.logs import redact
from habilis.core.settings import Settings, check_model, load_settings
from habilis.journal import OnChange
from habilis.journal.stores import open_store
from habilis.models.registry import Overrides
from habilis.sandbox.backends import names

EXAMPLE = 'for example: habilis run "What is the sum of the first 100 primes?"'
PATIENCE = 1.0
"""Seconds of silence after which we say that we wait for stdin."""

FILES = frozenset({'scripted', 'local', 'hf'})
"""Providers whose models may be files."""

OUTPUT_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}


COMMAND = 'habilis run'
"""Under which the order is kept with the run."""

FOREIGN = (
    'this run was imported, and wants a folder or a server that whoever made it had; give it a folder of this machine '
    'with --workspace DIR, and a model with --model M'
)
PLACE = frozenset({'journal', 'user'})
"""Settings that say where the run is."""


@dataclass(frozen=True, kw_only=True)
class Going:
    """A run to go on with, and how."""

    run: str
    answer: str | None = None
    max_steps: int | None = None
    on_change: OnChange = 'fail'
    replies: int = 0
    """That are in its record: a script goes on after them."""


class Again(TypedDict, total=False):
    """What is said anew when a run is gone on with."""

    model: str | None
    workspace: str | None
    trusted: bool
    """False: what was kept was written elsewhere. It gets nothing of this machine that was not said anew."""

    settings: Mapping[str, object]
    as_json: bool
    quiet: bool


@dataclass(frozen=True, kw_only=True)
class Order:
    """One call of `habilis run`. None is as not given."""

    task: str
    data: str | None = None
    """What was piped in."""

    model: str | None = None
    named_before: bool = False
    """Whether the model was named when the run began, and not now."""

    overrides: Overrides = field(default_factory=Overrides)
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    workspace: str | None = None
    output_type: str | None = None
    as_json: bool = False
    quiet: bool = False
    download: bool = False
    """Download the embedded model without asking."""

    session: str | None = None
    run_id: str | None = None
    going: Going | None = None
    """To go on with a run, instead of beginning one."""

    @property
    def options(self) -> str:
        """Those of `habilis runs` that find the run again."""
        given = {'--journal': self.settings.get('journal'), '--user': self.settings.get('user')}
        return ''.join(f' {name} {shlex.quote(redact(str(value)))}' for name, value in given.items() if value)

    def recorded(self, model: str) -> dict[str, object]:
        """What is kept with the run, so that it can be gone on with without saying all of this again."""
        return {
            COMMAND: {
                'model': _absolute(model),
                'overrides': _given(self.overrides),
                'settings': {name: value for name, value in _given(self.settings).items() if name not in PLACE},
                'workspace': None if self.workspace is None else os.path.abspath(self.workspace),
                'output_type': self.output_type,
            }
        }

    @classmethod
    def again(cls, task: str, meta: Mapping[str, object], going: 'Going', **more: Unpack['Again']) -> Self | None:
        """The order of a run that is gone on with; None if it was not made by this command."""
        kept = meta.get(COMMAND)
        if not isinstance(kept, dict):
            return None
        known = cast('dict[str, Any]', kept)
        model, workspace = more.get('model'), more.get('workspace') or known.get('workspace')
        settings = cast('dict[str, object]', known.get('settings') or {})
        overrides = cast('Overrides', known.get('overrides') or {})
        if not more.get('trusted', True):
            if workspace != more.get('workspace') or (overrides.get('base_url') and not model):
                raise JournalError(FOREIGN)
            settings = {name: value for name, value in settings.items() if name.startswith('max_')}
        return cls(
            task=task,
            model=model or known.get('model'),
            named_before=model is None,
            overrides=Overrides() if model else overrides,
            settings={**settings, **_given(more.get('settings', {}))},
            workspace=workspace,
            output_type=known.get('output_type'),
            as_json=more.get('as_json', False),
            quiet=more.get('quiet', False),
            going=going,
        )

    def load_settings(self) -> Settings:
        """The settings that hold here. Options of ours that are wrong are wrong usage."""
        load_settings()
        try:
            check_model(self.model or 'any', self.overrides)
            settings = load_settings(None, **self.settings)
            if self.settings.get('journal'):
                open_store(settings.journal)  # which neither connects nor makes anything
            if self.settings.get('sandbox') and self.going is None and settings.sandbox not in names():
                raise SettingsError(_no_backend(settings.sandbox))
        except SettingsError as error:  # without the options all is right
            raise wrong_option(error) from None
        return settings


def read_task(argument: str | None, *, quiet: bool = False) -> tuple[str, str | None]:
    """The task, and the data for it if something was piped in with it."""
    if argument is not None and argument != '-':
        task, data = argument, _read_stdin(quiet=quiet) if _is_piped() else None
    elif argument is None and _is_terminal():
        msg = f'say what to do; {EXAMPLE}'
        raise typer.BadParameter(msg, param_hint='TASK')
    else:
        task, data = _read_stdin(quiet=True), None
    if not task.strip():
        msg = f'the task is empty; {EXAMPLE}'
        raise typer.BadParameter(msg, param_hint='TASK')
    return task, data or None


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def _is_piped() -> bool:
    """Whether stdin is a pipe or a file. A terminal and `/dev/null` bring no data, and neither does a closed one."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read_stdin(*, quiet: bool) -> str:
    """All of it, as text."""
    if os.name == 'posix' and not quiet and not select.select([0], [], [], PATIENCE)[0]:
        typer.echo(
            'habilis: waiting for stdin, which is data for the task; `< /dev/null` says that there is none', err=True
        )
    try:
        return sys.stdin.buffer.read().decode('utf-8-sig')
    except UnicodeDecodeError:
        msg = 'stdin is not text in UTF-8; put it into a file, and name its folder with --workspace'
        raise typer.BadParameter(msg, param_hint='stdin') from None
    except (OSError, AttributeError):  # it is closed
        return ''


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _absolute(model: str) -> str:
    """A model that is a file is the same one from every folder."""
    provider, _, name = model.partition(':')
    return f'{provider}:{os.path.abspath(name)}' if provider in FILES and os.path.isfile(name) else model


def _no_backend(name: str) -> str:
    return f'the argument sandbox is {name!r}, which is not there; there is {", ".join(names())}'


def wrong_option(error: SettingsError) -> typer.BadParameter:
    """The complaint about an argument in the words of the command line."""
    complaint = str(error)
    name, space, rest = complaint.removeprefix('the argument ').partition(' ')
    ours = complaint.startswith('the argument ')
    return typer.BadParameter(f'--{name.replace("_", "-")}{space}{rest}' if ours else complaint)
