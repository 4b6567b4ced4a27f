"""All settings of Habilis and their precedence.

    arguments > environment > .env > habilis.toml of the project > habilis.toml of the user > default

`Settings` lists them; `docs/reference/settings.md` documents them. No representation of settings contains a key.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from habilis.core import settings_sources
from habilis.core.errors import SettingsError
from habilis.core.folders import config_folder
from habilis.core.logs import parse_levels
from habilis.core.secrets import hide, redact
from habilis.core.settings_sources import Layer, LocatedValue, Source

SECRET_ENDINGS = ('_KEY', '_TOKEN', '_SECRET', '_PASSWORD', '_ACCESS_KEY_ID', '_BEDROCK')
"""Suffixes of variable names that hold secrets."""

_MAX_SHOWN = 80


@dataclass(frozen=True)
class Expects:
    """Description of the valid values of a setting, for error messages."""

    text: str


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):  # bool is a subclass of int
        msg = 'a boolean is not a number'
        raise ValueError(msg)
    return value


def _split_list(value: object) -> object:
    """Split a comma-separated list."""
    return [word.strip() for word in value.split(',') if word.strip()] if isinstance(value, str) else value


def _check_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {'http', 'https'} or not parts.hostname or any(character.isspace() for character in value):
        msg = 'not a URL'
        raise ValueError(msg)
    return value


def _check_levels(value: str) -> str:
    try:
        parse_levels(value)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return value


Name = Annotated[str, Field(min_length=1, pattern=r'^\S(.*\S)?$'), Expects('a name such as provider:model')]
Switch = Annotated[bool, Expects('true or false')]
_Number = BeforeValidator(_reject_bool)
Count = Annotated[int, _Number, Field(ge=1), Expects('a whole number, 1 or more')]
Temperature = Annotated[float, _Number, Field(ge=0, le=2, allow_inf_nan=False), Expects('a number from 0 to 2')]
_SECONDS = (_Number, Field(gt=0, allow_inf_nan=False))
Seconds = Annotated[float, *_SECONDS, Expects('a number of seconds above 0')]
RunSeconds = Annotated[float, *_SECONDS, Expects("a number of seconds above 0, or 'off'")]
Delay = Annotated[float, _Number, Field(ge=0, allow_inf_nan=False), Expects('a number of seconds, 0 or more')]
Dollars = Annotated[float, _Number, Field(gt=0, allow_inf_nan=False), Expects('a number of US dollars above 0')]
Retries = Annotated[int, _Number, Field(ge=0, le=100), Expects('a whole number from 0 to 100')]
Megabytes = Annotated[int, _Number, Field(ge=48, le=4096), Expects('a whole number from 48 to 4096')]
Url = Annotated[str, AfterValidator(_check_url), Expects('a URL such as http://127.0.0.1:8000/v1')]
Key = Annotated[SecretStr, Expects('text')]
Names = Annotated[
    tuple[Name, ...], BeforeValidator(_split_list), Expects('names such as provider:model, separated by commas')
]
HostNames = Annotated[
    tuple[Annotated[str, Field(pattern=r'^[^\s/@]+$')], ...],
    BeforeValidator(_split_list),
    Expects('host names such as wiki.example or 10.0.0.5:8080, separated by commas'),
]
LogLevels = Annotated[str, AfterValidator(_check_levels), Expects('a level such as info, or models=debug,agent=info')]
Text = Annotated[str, Field(min_length=1), Expects('text')]


class ModelSettings(BaseModel):
    """Settings of an alias: `[models.fast]` in `habilis.toml`. Unset values are inherited from `Settings`."""

    model_config = ConfigDict(frozen=True, extra='forbid', hide_input_in_errors=True)

    model: Name
    """`provider:model`."""

    temperature: Temperature | None = None
    max_tokens: Count | None = None
    timeout: Seconds | None = None
    base_url: Url | None = Field(default=None, repr=False)
    api_key: Key | None = None
    functions: Switch | None = None
    context_tokens: Count | None = None
    small: Switch | None = None
    images: Switch | None = None
    retries: Retries | None = None
    extra: Annotated[dict[str, JsonValue], Expects('a table of JSON values')] = Field(default={}, repr=False)

    @model_validator(mode='before')
    @classmethod
    def _from_name(cls, value: object) -> object:
        """Accept `fast = "provider:model"` for a table with the model only."""
        return {'model': value} if isinstance(value, str) else value


def check_model(model: str, arguments: Mapping[str, object]) -> ModelSettings:
    """Validate arguments for one model as those of an alias. None: not given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return ModelSettings.model_validate({'model': model, **given})
    except ValidationError as error:
        first = _first(error.errors())
        msg = _model_error_message(first, [str(part) for part in first['loc']], 'the model', 'the argument ')
        raise SettingsError(msg) from None


Alias = Annotated[str, Field(pattern=r'^[^\s:,]+$'), Expects('a name without spaces, commas and colons')]
Aliases = Annotated[dict[Alias, ModelSettings], Expects('a table of aliases, each with a model')]


class Settings(BaseModel):
    """All settings. Frozen; created by `load_settings`."""

    model_config = ConfigDict(frozen=True, extra='forbid', hide_input_in_errors=True)

    model: Name | None = None
    """Default model: `provider:model` or an alias. None: the first one that is found."""

    fallback: Names = ()
    """Fallback models, tried in order if the first one fails."""

    models: Aliases = {}
    """Models by alias, each with its own settings."""

    temperature: Temperature | None = None
    """Default for every model, like the next five settings. None: the default of the provider."""

    max_tokens: Count | None = None
    timeout: Seconds = 120.0
    base_url: Url | None = Field(default=None, repr=False)
    api_key: Key | None = None
    retries: Retries = 4

    response_cache: Switch = False
    """Whether equal requests are answered from disk."""

    max_steps: Count = 20
    """Limits of one run, like the next four settings; None: no limit."""

    max_seconds: RunSeconds | Literal['off'] | None = None
    """None: ten minutes with a model in this process, no limit with others."""

    max_run_tokens: Count | None = None
    max_cost: Dollars | None = None
    max_tool_calls: Count | None = None

    journal: Text | None = Field(default=None, repr=False)
    """Journal of the runs: `off`, a file, a folder, or the URL of a server. None: a file in the data folder."""

    user: Text | None = None
    """Owner of the runs at the command line, if several people share a journal."""

    library: Text | None = None
    """Folder of the tool library. None: `library` in the data folder."""

    memory: Text | None = Field(default=None, repr=False)
    """The memory: a file, or the URL of a database. None: a file in the data folder."""

    embedder: Text | None = None
    """Search by meaning: `off`, `minilm`, or a model of a provider or an alias. None: `minilm`, if it is installed."""

    sandbox: Text = 'auto'
    """Sandbox backend, or `auto`: `process` if the packages have native code, else `wasm`.

    The next two settings are the limits of each cell."""

    sandbox_seconds: Seconds = 30.0
    sandbox_memory_mb: Megabytes = 256
    sandbox_protect: Switch = True
    """Keep `.git/config`, git hooks and start files of a workspace as they are. A project cannot set it to false."""

    searxng_url: Url | None = None
    """SearXNG server for searches of the web. None: Brave or Tavily, if there is a key, else `ddgs`."""

    web_hosts: HostNames = ()
    """Hosts of private networks that web tools may fetch from. A project cannot set it."""

    observation_tokens: Count = 2000
    """Maximum size of a cell's output that the model sees."""

    observation_lines: Count = 200

    tool_tokens: Count = 3000
    """Tokens of the prompt that descriptions of tools may take. Of more, the model is told how to search for them."""

    summary: Text = 'off'
    """Summary at the end of a run: `off`, `default`, or the prompt for it."""

    notebook_view: Switch = True
    """Whether a notebook shows the runs of agents without hooks."""

    status: Switch = True
    """Whether `habilis run` and `run_sync` show a status line on a terminal."""

    keys: Annotated[Literal['emacs', 'vim'], Expects('emacs or vim')] = 'emacs'
    """Keys of the prompt of `habilis chat`."""

    bell: Delay = 30.0
    """`habilis chat` rings the bell of the terminal after a turn of so many seconds; 0: never."""

    log_level: LogLevels = 'warning'
    debug: Switch = False
    """Log everything; overrides `log_level`."""

    _origins: dict[str, Source] = PrivateAttr(default_factory=dict[str, Source])
    _variables: dict[str, SecretStr] = PrivateAttr(default_factory=dict[str, SecretStr])

    def secret(self, name: str) -> str | None:
        """Value of a variable of the environment or else of `.env`; None if it is missing or empty."""
        if value := os.environ.get(name, '').strip():
            return value
        stored = self._variables.get(name)
        return stored.get_secret_value().strip() or None if stored else None

    def origin(self, name: str) -> Source:
        """Source of a setting (`model`), an alias (`models.fast`) or a variable (`OPENAI_API_KEY`)."""
        if name in self._origins:
            return self._origins[name]
        if name not in type(self).model_fields and os.environ.get(name, '').strip():
            return 'environment'
        return '.env' if name in self._variables else 'default'

    @classmethod
    def assemble(cls, values: Layer, aliases: Layer, variables: dict[str, str]) -> Self:
        """Validate and combine the values of the sources, the aliases, and the variables of `.env`."""
        raw: dict[str, object] = {name: located.value for name, located in values.items()}
        raw['models'] = {alias: located.value for alias, located in aliases.items()}
        try:
            settings = cls.model_validate(raw)
        except ValidationError as error:
            raise SettingsError(_error_message(_first(error.errors()), values, aliases)) from None
        settings._origins.update({name: located.source for name, located in values.items()})
        settings._origins.update({f'models.{alias}': located.source for alias, located in aliases.items()})
        settings._variables.update({name: SecretStr(value) for name, value in variables.items()})
        hide(settings.secrets())
        return settings

    def secrets(self) -> Iterator[str]:
        """All secrets: keys of the settings, the environment and `.env`."""
        for holder in (self, *self.models.values()):
            if holder.api_key:
                yield holder.api_key.get_secret_value()
        for variables in (os.environ, self._variables):
            for name in variables:
                if name.upper().endswith(SECRET_ENDINGS) and (value := self.secret(name)):
                    yield value


NAMES = tuple(Settings.model_fields)
"""Names of all settings. The environment variable is `HABILIS_` plus the name in capitals."""


def load_settings(folder: Path | None = None, **arguments: object) -> Settings:
    """Load the settings for a folder (default: the current one). None arguments count as not given."""
    folder = (folder or Path.cwd()).absolute()
    variables = settings_sources.read_variables(folder / '.env')
    values: dict[str, LocatedValue] = {}
    aliases: dict[str, LocatedValue] = {}
    for layer in _layers(folder, variables, arguments):
        values.update({name: located for name, located in layer.items() if name != 'models'})
        aliases.update(_aliases(layer['models']) if 'models' in layer else ())
    return Settings.assemble(values, aliases, variables)


def _layers(folder: Path, variables: dict[str, str], arguments: dict[str, object]) -> Iterator[Layer]:
    """The settings of each source, lowest precedence first."""
    yield settings_sources.from_toml(config_folder() / settings_sources.FILE, 'user', NAMES)
    if file := settings_sources.project_file(folder):
        yield settings_sources.from_toml(file, 'project', NAMES)
    yield settings_sources.from_variables(variables, NAMES, file=folder / '.env')
    yield settings_sources.from_variables(os.environ, NAMES)
    yield settings_sources.from_arguments(arguments, NAMES)


def _aliases(located: LocatedValue) -> Iterator[tuple[str, LocatedValue]]:
    """The aliases of one source. They replace aliases of the same name of lower precedence."""
    if not isinstance(located.value, dict):
        msg = f'{located.location}: expected a table of aliases, each with a model'
        raise SettingsError(msg)
    for alias, value in cast('dict[object, object]', located.value).items():
        yield str(alias), LocatedValue(value=value, source=located.source, location=f'{located.location}.{alias}')


def _first(errors: list[ErrorDetails]) -> ErrorDetails:
    """The error to report. A misspelled name comes first, as it is often why another is missing."""
    return next((error for error in errors if error['type'] == 'extra_forbidden'), errors[0])


def _error_message(error: ErrorDetails, values: Layer, aliases: Layer) -> str:
    """Error message: location, value unless it may be secret, and what is expected."""
    name, *inside = map(str, error['loc'])
    if name != 'models':
        value = _shown(name, error['input'])
        return f'{values[name].location}{value}: expected {_expected(Settings, name)}{_reason(error)}'
    alias, *rest = inside
    return _model_error_message(error, rest, aliases[alias].location, f'{aliases[alias].location}.')


def _model_error_message(error: ErrorDetails, path: list[str], location: str, prefix: str) -> str:
    if not path:
        return f'{location}: expected a table with a model'
    key = path[0]
    if key == '[key]':
        return f'{location}: expected an alias without spaces, commas and colons'
    if error['type'] == 'extra_forbidden':
        return (
            f'{prefix}{key} is not a setting of a model{settings_sources.suggestion(key, ModelSettings.model_fields)}'
        )
    if error['type'] == 'missing':
        return f'{location}: {key} is missing: expected {_expected(ModelSettings, key)}'
    return f'{prefix}{key}{_shown(key, error["input"])}: expected {_expected(ModelSettings, key)}'


def _shown(name: str, value: object) -> str:
    if name in {'api_key', 'extra'} or not isinstance(value, str | int | float):
        return ''
    text = redact(repr(value))
    return f' is {text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"}'


def _reason(error: ErrorDetails) -> str:
    """The message of our own validator, if it is more specific."""
    text = str(error.get('ctx', {}).get('error', ''))
    return f' ({text})' if text.startswith('unknown') else ''


def _expected(owner: type[BaseModel], name: str) -> str:
    field = owner.model_fields[name]
    found = [*field.metadata, *_metadata(field.annotation)]
    return next((item.text for item in found if isinstance(item, Expects)), 'another value')


def _metadata(annotation: object) -> Iterator[object]:
    """The metadata inside `Annotated[…] | None`."""
    for part in getattr(annotation, '__args__', ()):
        yield from getattr(part, '__metadata__', ())
