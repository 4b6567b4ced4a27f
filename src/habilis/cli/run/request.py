"""What a command line asks for: a run to start or to resume, its agent, and what is printed."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypedDict, Unpack, cast, get_args

from habilis.agent.run_spec import RunSpec
from habilis.cli.backend_options import BackendOptions
from habilis.cli.options import ModeName
from habilis.cli.settings import settings_with_options, usage_errors
from habilis.core.errors import JournalError, SettingsError
from habilis.core.narrowing import fields_in, is_dict, items_in
from habilis.core.secrets import redact
from habilis.core.settings import Settings, check_model, load_settings
from habilis.models.contract import Model
from habilis.models.providers import PROVIDERS, shown_url, url_of
from habilis.models.registry import Overrides, Registry, resolve_name
from habilis.sandbox.backends import names
from habilis.sandbox.options import SandboxSettings

FILE_PROVIDERS = frozenset({'scripted', 'local', 'hf'})
"""Providers whose models may be files."""

OUTPUT_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in (int, float, str, bool, list, dict)}

NO_RUN = RunSpec(task='')
"""That of a chat, whose turns are the runs."""

DEFAULT_LIBRARY = 'default'
META_KEY = 'habilis run'
"""Key of the request in the metadata of the run."""

UNTRUSTED = (
    'this imported run needs a folder or a server of the machine it was made on; '
    'give it a folder with --workspace DIR and a model with --model M'
)
UNTRUSTED_TOOLS = (
    'this imported run had tools or network access, which are not given to a run of another machine; '
    'start it again with habilis run'
)
LOCATION_SETTINGS = frozenset({'journal', 'user'})
"""Settings that say where the run is stored; not recorded with it."""


def journal_options(journal: object, user: object) -> str:
    """Options of `habilis runs` that find a run again, without passwords."""
    given = {'--journal': journal, '--user': user}
    return ''.join(f' {name} {shlex.quote(redact(str(value)))}' for name, value in given.items() if value)


@dataclass(frozen=True, kw_only=True)
class ToolNames:
    """Tools of the user's program."""

    names: Sequence[str]
    """Each as `module:name`, or `web`."""

    folder: str
    """Where the modules are searched first."""


class ResumeOverrides(TypedDict, total=False):
    """Options that replace recorded ones when a run is resumed."""

    model: str | None
    workspace: str | None
    trusted: bool
    """False for an imported run: it gets no access to this machine that is not requested again."""

    settings: Mapping[str, object]
    replies: int
    as_json: bool
    quiet: bool


@dataclass(frozen=True, kw_only=True)
class CommandRequest:
    """A run to start or to resume, with what only a command has. None means not given."""

    spec: RunSpec = NO_RUN
    replies: int = 0
    """Number of recorded model replies of a run to resume; a scripted model skips them."""

    model: str | None = None
    model_is_recorded: bool = False
    """Whether the model comes from the record of the run instead of an option."""

    overrides: Overrides = field(default_factory=Overrides)
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    backend: BackendOptions = field(default_factory=BackendOptions)
    workspace: str | None = None
    read_only: bool = False
    """Whether the code may only read the workspace."""

    checkpoints: bool = False
    """Store the files of the workspace after each step."""

    mode: ModeName | None = None
    """The permission mode of a run; None: code may change the workspace, without tools for it. A chat has its own."""

    delegate: bool = False
    """Whether the code may start subagents."""

    tools: ToolNames | None = None
    mcp: Sequence[str] = ()
    """MCP servers: command lines, URLs, and JSON files."""

    library: str | None = None
    """Folder of the tool library; `default` for that of the settings."""

    skills: Sequence[str] = ()
    """Skills beside those that are found, or `off`."""

    packages: Sequence[str] = ()
    network: Sequence[str] = ()
    """Hosts that the code may connect to."""

    output_type: str | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    download: bool = False
    """Download the embedded model without asking."""

    app: str | None = None
    """Agent of a user's program, as `module:name`."""

    @property
    def journal_options(self) -> str:
        """Options of `habilis runs` that find this run again."""
        return journal_options(self.settings.get('journal'), self.settings.get('user'))

    @property
    def sandbox_settings(self) -> SandboxSettings:
        """What a sandbox of any backend offers beyond its defaults."""
        settings = SandboxSettings()
        if self.packages:
            settings['packages'] = list(map(_absolute_path, self.packages))
        if self.network:
            settings['network'] = list(self.network)
        if self.read_only:
            settings['read_only'] = True
        return settings

    @property
    def library_folder(self) -> str | None:
        """The library, with an absolute path."""
        return self.library if self.library in (None, DEFAULT_LIBRARY) else os.path.abspath(self.library)

    def to_meta(self, model: Model, options: Settings) -> dict[str, object]:
        """Metadata recorded with the run, so that it can be resumed without repeating the options."""
        name = self.model or options.model
        settings = {name: value for name, value in _given(self.settings).items() if name not in LOCATION_SETTINGS}
        return {
            META_KEY: {
                'model': _absolute(name or model.name),
                'server': self._server(name, options),
                'overrides': _given(self.overrides),
                'settings': settings,
                'workspace': None if self.workspace is None else os.path.abspath(self.workspace),
                'output_type': self.output_type,
                **_given({'tools': None if self.tools is None else asdict(self.tools), 'library': self.library_folder}),
                **({'mcp': [_absolute_file(text) for text in self.mcp]} if self.mcp else {}),
                **({'checkpoints': True} if self.checkpoints else {}),
                **({'mode': self.mode} if self.mode else {}),
                **({'delegate': True} if self.delegate else {}),
                **({'skills': list(map(_absolute_path, self.skills))} if self.skills else {}),
                **({'backend': self.backend.given} if self.backend.given else {}),
                **{name: value for name, value in self.sandbox_settings.items() if value},
            }
        }

    def _server(self, name: str | None, settings: Settings) -> dict[str, str]:
        """Provider and address of the model, for a shell with other settings. Keys are not recorded."""
        if name is None:  # found by a search, which names the provider
            return {}
        config = Registry(settings).get(name, self.overrides)
        resolved = resolve_name(config)
        provider = PROVIDERS.get(resolved.provider)
        url = url_of(provider, config.base_url) if provider is not None else None
        address = {'base_url': shown_url(url)} if url and provider and url != provider.url else {}
        return {'model': _absolute(str(resolved)), **address}

    @classmethod
    def from_meta(
        cls, meta: Mapping[str, object], spec: RunSpec = NO_RUN, **overrides: Unpack[ResumeOverrides]
    ) -> Self | None:
        """The request with the options of a recorded run; None if `habilis run` did not make it."""
        recorded = meta.get(META_KEY)
        if not is_dict(recorded):
            return None
        known: dict[str, Any] = fields_in(recorded)
        model, workspace = overrides.get('model'), overrides.get('workspace') or known.get('workspace')
        settings = fields_in(known.get('settings'))
        recorded_model, model_overrides = _recorded_model(known)
        tools, backend = (dict[str, Any](fields_in(known.get(name))) for name in ('tools', 'backend'))
        is_trusted = overrides.get('trusted', True)
        if not is_trusted:
            has_host = workspace != overrides.get('workspace') or (model_overrides.get('base_url') and not model)
            _check_untrusted(known, has_host=bool(has_host))
            settings = {name: value for name, value in settings.items() if name.startswith('max_')}
        return cls(
            spec=spec,
            replies=overrides.get('replies', 0),
            model=model or recorded_model,
            model_is_recorded=model is None,
            overrides=Overrides() if model else model_overrides,
            settings={**settings, **_given(overrides.get('settings', {}))},
            backend=BackendOptions(**backend) if is_trusted else BackendOptions(),
            workspace=workspace,
            read_only=known.get('read_only') is True and not overrides.get('workspace'),
            checkpoints=known.get('checkpoints') is True and is_trusted,
            mode=next((mode for mode in get_args(ModeName) if mode == known.get('mode')), None),
            delegate=known.get('delegate') is True,
            tools=ToolNames(**tools) if tools else None,
            mcp=_names(known, 'mcp'),
            library=known.get('library'),
            skills=_names(known, 'skills'),
            packages=_names(known, 'packages'),
            network=_names(known, 'network'),
            output_type=known.get('output_type'),
            as_json=overrides.get('as_json', False),
            quiet=overrides.get('quiet', False),
        )

    def load_settings(self) -> Settings:
        """The settings of this run. An invalid option is a usage error."""
        load_settings()
        with usage_errors():
            check_model(self.model or 'any', self.overrides)
            settings = settings_with_options(self.settings)
            is_new = not self.spec.is_resumption
            if self.settings.get('sandbox') and is_new and settings.sandbox not in (*names(), 'auto'):
                msg = (
                    f'the argument sandbox is {settings.sandbox!r}, which is not available; known: {", ".join(names())}'
                )
                raise SettingsError(msg)
            if is_new:
                self.backend.check(settings.sandbox)
            self.backend.settings_for(settings.sandbox)
        return settings


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _check_untrusted(known: Mapping[str, Any], *, has_host: bool) -> None:
    """A run that is not trusted must not reach more than its sandbox. Raises `JournalError`."""
    if has_host:
        raise JournalError(UNTRUSTED)
    if any(known.get(name) for name in ('tools', 'network', 'library', 'skills', 'mcp')):
        raise JournalError(UNTRUSTED_TOOLS)


def _recorded_model(known: Mapping[str, Any]) -> tuple[str | None, Overrides]:
    """The model of a recorded run: by its name, or by its server where the settings do not have the name."""
    overrides = cast('Overrides', known.get('overrides') or {})
    server = {name: str(value) for name, value in fields_in(known.get('server')).items()}
    model = known.get('model')
    if not server or model in load_settings().models:
        return model, overrides
    overrides = overrides.copy()
    overrides['base_url'] = server.get('base_url')
    return server['model'], overrides


def _names(recorded: Mapping[str, object], name: str) -> list[str]:
    return [str(value) for value in items_in(recorded.get(name))]


def _absolute_path(name: str) -> str:
    """An absolute path, if the name is that of a file or folder."""
    return os.path.abspath(name) if os.path.exists(name) else name


def _absolute_file(text: str) -> str:
    return os.path.abspath(text) if text.endswith('.json') and os.path.isfile(text) else text


def _absolute(model: str) -> str:
    """The model name with an absolute path, if the model is a file."""
    provider, _, name = model.partition(':')
    return f'{provider}:{os.path.abspath(name)}' if provider in FILE_PROVIDERS and os.path.isfile(name) else model
