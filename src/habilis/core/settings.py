"""Every setting of Habilis, and how it is put together.

    arguments > environment > .env > habilis.toml of the project > habilis.toml of the user > default

Read `Settings` for what there is; `docs/reference/settings.md` says the same for people. Nothing that shows settings
shows a key.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self, cast
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

from habilis.core import sources
from habilis.core.errors import SettingsError
from habilis.core.folders import config_folder
from habilis.core.logs import hide, parse_levels, redact
from habilis.core.sources import Layer, Placed, Source

SECRET_ENDINGS = ('_KEY', '_TOKEN', '_SECRET', '_PASSWORD', '_ACCESS_KEY_ID', '_BEDROCK')
"""Variables with such names hold secrets."""

_MAX_SHOWN = 80


@dataclass(frozen=True)
class Expects:
    """What a setting takes, for the message about a value that it does not take."""

    text: str


def _not_a_switch(value: object) -> object:
    if isinstance(value, bool):  # Python takes True for 1
        msg = 'a switch is not a number'
        raise ValueError(msg)
    return value


def _words(value: object) -> object:
    """A list that may be written with commas."""
    return [word.strip() for word in value.split(',') if word.strip()] if isinstance(value, str) else value


def _address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {'http', 'https'} or not parts.hostname or any(character.isspace() for character in value):
        msg = 'not an address'
        raise ValueError(msg)
    return value


def _levels(value: str) -> str:
    try:
        parse_levels(value)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return value


Name = Annotated[str, Field(min_length=1, pattern=r'^\S(.*\S)?$'), Expects('a name such as provider:model')]
Switch = Annotated[bool, Expects('true or false')]
_Number = BeforeValidator(_not_a_switch)
Count = Annotated[int, _Number, Field(ge=1), Expects('a whole number, 1 or more')]
Temperature = Annotated[float, _Number, Field(ge=0, le=2, allow_inf_nan=False), Expects('a number from 0 to 2')]
Seconds = Annotated[float, _Number, Field(gt=0, allow_inf_nan=False), Expects('a number of seconds above 0')]
Dollars = Annotated[float, _Number, Field(gt=0, allow_inf_nan=False), Expects('a number of US dollars above 0')]
Retries = Annotated[int, _Number, Field(ge=0, le=100), Expects('a whole number from 0 to 100')]
Megabytes = Annotated[int, _Number, Field(ge=48, le=4096), Expects('a whole number from 48 to 4096')]
Address = Annotated[str, AfterValidator(_address), Expects('an address such as http://127.0.0.1:8000/v1')]
Key = Annotated[SecretStr, Expects('text')]
Names = Annotated[tuple[Name, ...], BeforeValidator(_words), Expects('names such as provider:model, with commas')]
LogLevels = Annotated[str, AfterValidator(_levels), Expects('a level such as info, or models=debug,agent=info')]
Text = Annotated[str, Field(min_length=1), Expects('text')]


class ModelSettings(BaseModel):
    """One alias: `[models.fast]` in `habilis.toml`. What is not set here is as in `Settings`."""

    model_config = ConfigDict(frozen=True, extra='forbid', hide_input_in_errors=True)

    model: Name
    """As `provider:model`."""

    temperature: Temperature | None = None
    max_tokens: Count | None = None
    timeout: Seconds | None = None
    base_url: Address | None = Field(default=None, repr=False)
    api_key: Key | None = None
    functions: Switch | None = None
    context_tokens: Count | None = None
    small: Switch | None = None
    retries: Retries | None = None
    extra: Annotated[dict[str, JsonValue], Expects('a table of JSON values')] = Field(default={}, repr=False)

    @model_validator(mode='before')
    @classmethod
    def _from_name(cls, value: object) -> object:
        """`fast = "provider:model"` is short for a table with nothing else."""
        return {'model': value} if isinstance(value, str) else value


def check_model(model: str, arguments: Mapping[str, object]) -> ModelSettings:
    """Arguments for one model, checked as those of an alias are. None is as not given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return ModelSettings.model_validate({'model': model, **given})
    except ValidationError as error:
        first = _first(error.errors())
        msg = _model_complaint(first, [str(part) for part in first['loc']], 'the model', 'the argument ')
        raise SettingsError(msg) from None


Alias = Annotated[str, Field(pattern=r'^[^\s:,]+$'), Expects('a name without spaces, commas and colons')]
Aliases = Annotated[dict[Alias, ModelSettings], Expects('a table of aliases, each with a model')]


class Settings(BaseModel):
    """What the user has set. Frozen; make one with `load_settings`."""

    model_config = ConfigDict(frozen=True, extra='forbid', hide_input_in_errors=True)

    model: Name | None = None
    """The model to use: `provider:model` or an alias. None: the first that is found."""

    fallback: Names = ()
    """Models to ask in turn where the first cannot answer."""

    models: Aliases = {}
    """Models by alias, each with settings of its own."""

    temperature: Temperature | None = None
    """For every model that does not set it; so are the next five. None: what the provider does."""

    max_tokens: Count | None = None
    timeout: Seconds = 120.0
    base_url: Address | None = Field(default=None, repr=False)
    api_key: Key | None = None
    retries: Retries = 4

    response_cache: Switch = False
    """Answer the same request from disk."""

    max_steps: Count = 20
    """Limits of one run; None: no limit."""

    max_seconds: Seconds | None = None
    max_run_tokens: Count | None = None
    max_cost: Dollars | None = None
    max_tool_calls: Count | None = None

    journal: Text | None = Field(default=None, repr=False)
    """Where runs are kept: `off`, a file, a folder, or an address of a server. None: a file in the data folder."""

    user: Text | None = None
    """Whose runs are shown and made at the command line, where several people share a journal."""

    sandbox: Text = 'wasm'
    """The backend, and the limits of each cell in it."""

    sandbox_seconds: Seconds = 30.0
    sandbox_memory_mb: Megabytes = 256

    observation_tokens: Count = 2000
    """How much of a cell's output the model sees."""

    observation_lines: Count = 200

    summary: Text = 'off'
    """A summary at the end of a run: `off`, `default`, or the prompt to make it with."""

    log_level: LogLevels = 'warning'
    debug: Switch = False
    """Log everything, whatever `log_level` says."""

    _origins: dict[str, Source] = PrivateAttr(default_factory=dict[str, Source])
    _variables: dict[str, SecretStr] = PrivateAttr(default_factory=dict[str, SecretStr])

    def secret(self, name: str) -> str | None:
        """The variable of that name, from the environment or else from `.env`; None if it is missing or empty."""
        if value := os.environ.get(name, '').strip():
            return value
        stored = self._variables.get(name)
        return stored.get_secret_value().strip() or None if stored else None

    def origin(self, name: str) -> Source:
        """Where a setting (`model`), an alias (`models.fast`) or a variable (`OPENAI_API_KEY`) comes from."""
        if name in self._origins:
            return self._origins[name]
        if name not in type(self).model_fields and os.environ.get(name, '').strip():
            return 'environment'
        return '.env' if name in self._variables else 'default'

    @classmethod
    def assemble(cls, values: Layer, aliases: Layer, variables: dict[str, str]) -> Self:
        """Settings of what was found, the aliases of models, and the variables of `.env`."""
        raw: dict[str, object] = {name: placed.value for name, placed in values.items()}
        raw['models'] = {alias: placed.value for alias, placed in aliases.items()}
        try:
            settings = cls.model_validate(raw)
        except ValidationError as error:
            raise SettingsError(_complaint(_first(error.errors()), values, aliases)) from None
        settings._origins.update({name: placed.source for name, placed in values.items()})
        settings._origins.update({f'models.{alias}': placed.source for alias, placed in aliases.items()})
        settings._variables.update({name: SecretStr(value) for name, value in variables.items()})
        hide(settings.secrets())
        return settings

    def secrets(self) -> Iterator[str]:
        """All that must never be shown: keys of settings, of the environment and of `.env`."""
        for holder in (self, *self.models.values()):
            if holder.api_key:
                yield holder.api_key.get_secret_value()
        for variables in (os.environ, self._variables):
            for name in variables:
                if name.upper().endswith(SECRET_ENDINGS) and (value := self.secret(name)):
                    yield value


NAMES = tuple(Settings.model_fields)
"""Of all settings. The environment variable is `HABILIS_` and the name in capitals."""


def load_settings(folder: Path | None = None, **arguments: object) -> Settings:
    """The settings that hold in a folder (by default the current one). Arguments that are None are as not given."""
    folder = (folder or Path.cwd()).absolute()
    variables = sources.read_variables(folder / '.env')
    values: dict[str, Placed] = {}
    aliases: dict[str, Placed] = {}
    for layer in _layers(folder, variables, arguments):
        values.update({name: placed for name, placed in layer.items() if name != 'models'})
        aliases.update(_aliases(layer['models']) if 'models' in layer else ())
    return Settings.assemble(values, aliases, variables)


def _layers(folder: Path, variables: dict[str, str], arguments: dict[str, object]) -> Iterator[Layer]:
    """What each source says, the weakest first."""
    yield sources.from_toml(config_folder() / sources.FILE, 'user', NAMES)
    if file := sources.project_file(folder):
        yield sources.from_toml(file, 'project', NAMES)
    yield sources.from_variables(variables, NAMES, file=folder / '.env')
    yield sources.from_variables(os.environ, NAMES)
    yield sources.from_arguments(arguments, NAMES)


def _aliases(placed: Placed) -> Iterator[tuple[str, Placed]]:
    """The aliases of one source. They replace those of the same name in weaker sources, and leave others alone."""
    if not isinstance(placed.value, dict):
        msg = f'{placed.place}: expected a table of aliases, each with a model'
        raise SettingsError(msg)
    for alias, value in cast('dict[object, object]', placed.value).items():
        yield str(alias), Placed(value=value, source=placed.source, place=f'{placed.place}.{alias}')


def _first(errors: list[ErrorDetails]) -> ErrorDetails:
    """The one to tell. A misspelt name is often why another is missing."""
    return next((error for error in errors if error['type'] == 'extra_forbidden'), errors[0])


def _complaint(error: ErrorDetails, values: Layer, aliases: Layer) -> str:
    """One line: where the value stands, the value unless it may be secret, and what is expected."""
    name, *inside = map(str, error['loc'])
    if name != 'models':
        return (
            f'{values[name].place}{_shown(name, error["input"])}: expected {_expected(Settings, name)}{_reason(error)}'
        )
    alias, *rest = inside
    return _model_complaint(error, rest, aliases[alias].place, f'{aliases[alias].place}.')


def _model_complaint(error: ErrorDetails, path: list[str], place: str, prefix: str) -> str:
    if not path:
        return f'{place}: expected a table with a model'
    key = path[0]
    if key == '[key]':
        return f'{place}: expected an alias without spaces, commas and colons'
    if error['type'] == 'extra_forbidden':
        return f'{prefix}{key} is not a setting of a model{sources.suggestion(key, ModelSettings.model_fields)}'
    if error['type'] == 'missing':
        return f'{place}: {key} is missing: expected {_expected(ModelSettings, key)}'
    return f'{prefix}{key}{_shown(key, error["input"])}: expected {_expected(ModelSettings, key)}'


def _shown(name: str, value: object) -> str:
    if name in {'api_key', 'extra'} or not isinstance(value, str | int | float):
        return ''
    text = redact(repr(value))
    return f' is {text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"}'


def _reason(error: ErrorDetails) -> str:
    """What a check of ours found, where it says more than the expectation."""
    text = str(error.get('ctx', {}).get('error', ''))
    return f' ({text})' if text.startswith('there is no') else ''


def _expected(owner: type[BaseModel], name: str) -> str:
    field = owner.model_fields[name]
    found = [*field.metadata, *_metadata(field.annotation)]
    return next((item.text for item in found if isinstance(item, Expects)), 'another value')


def _metadata(annotation: object) -> Iterator[object]:
    """The notes inside `Annotated[…] | None`."""
    for part in getattr(annotation, '__args__', ()):
        yield from getattr(part, '__metadata__', ())
