"""Sources of settings: arguments, environment, `.env` and two `habilis.toml`. `settings.py` validates the values."""

import json
import logging
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from habilis.core.errors import SettingsError
from habilis.core.regular_files import read_regular_text
from habilis.core.similar_names import similar_names

Source = Literal['argument', 'environment', '.env', 'project', 'user', 'default']
"""`project` is the `habilis.toml` of the current folder or repository, `user` that of the configuration folder."""

PROJECT_FILES: frozenset[Source] = frozenset({'.env', 'project'})
"""Files of the project folder, which may come from an untrusted author."""

PREFIX = 'HABILIS_'
FILE = 'habilis.toml'
OTHER_VARIABLES = frozenset(
    {'HABILIS_CACHE', 'HABILIS_CATALOGUE', 'HABILIS_DATA', 'HABILIS_ENGINE', 'HABILIS_TRACEBACK'}
)
"""Variables that are not settings."""

COMMON_VARIABLES = {'LOG_LEVEL': 'log_level', 'ENABLE_RESPONSE_CACHE': 'response_cache'}
"""Common names without the prefix. The name with the prefix takes precedence."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LocatedValue:
    """Value of a setting and its location."""

    value: object
    source: Source
    location: str
    """Location for messages: `HABILIS_MODEL`, `/path/.env:HABILIS_MODEL` or `/path/habilis.toml:model`."""


Layer = Mapping[str, LocatedValue]
"""The settings of one source."""


def from_arguments(arguments: Mapping[str, object], known: Collection[str]) -> Layer:
    """Settings from the arguments of a call. None: not given."""
    for name in arguments.keys() - set(known):
        msg = f'unknown setting {name!r}{suggestion(name, known)}'
        raise SettingsError(msg)
    return {
        name: LocatedValue(value=value, source='argument', location=f'the argument {name}')
        for name, value in arguments.items()
        if value is not None
    }


def from_variables(variables: Mapping[str, str], known: Collection[str], *, file: Path | None = None) -> Layer:
    """Settings from environment variables or a `.env` file. Empty: not set."""
    layer: dict[str, LocatedValue] = {}
    where = f'{file}:' if file else ''
    names = {variable: name for variable, name in COMMON_VARIABLES.items() if name in known}
    names |= {f'{PREFIX}{name.upper()}': name for name in known}
    for variable, name in names.items():
        if text := variables.get(variable, '').strip():
            location = f'{where}{variable}'
            value = _json(text, location) if name == 'models' else text
            layer[name] = LocatedValue(value=value, source='.env' if file else 'environment', location=location)
    for variable in sorted(variables):
        if variable.startswith(PREFIX) and variable not in names and variable not in OTHER_VARIABLES:
            _log.warning('%s%s is not a setting%s', where, variable, suggestion(variable, names))
    return layer


def _json(text: str, location: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # the text may contain a key, so it is not shown
        where = f' at character {error.pos}' if isinstance(error, json.JSONDecodeError) else ''
        msg = f'{location} is not JSON{where}: expected an object of aliases, {{"fast": {{"model": "provider:model"}}}}'
        raise SettingsError(msg) from None


def from_toml(file: Path, source: Literal['project', 'user'], known: Collection[str]) -> Layer:
    """Settings from a `habilis.toml`; empty if the file does not exist."""
    text = _read(file)
    if text is None:
        return {}
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f'{file} is not valid TOML: {_first_line(error)}'
        raise SettingsError(msg) from None
    for name in table.keys() - set(known):
        msg = f'{file}:{name} is not a setting{suggestion(name, known)}'
        raise SettingsError(msg)
    return {name: LocatedValue(value=value, source=source, location=f'{file}:{name}') for name, value in table.items()}


def read_variables(file: Path) -> dict[str, str]:
    """The variables of a `.env` file, verbatim: `$` is not expanded."""
    text = _read(file)
    if text is None:
        return {}
    from io import StringIO

    from dotenv.parser import parse_stream

    variables: dict[str, str] = {}
    for binding in parse_stream(StringIO(text)):
        if binding.error:  # the line may contain a key, so it is not shown
            msg = f'{file}, line {_line(binding.original.string, binding.original.line)}: expected NAME=value'
            raise SettingsError(msg)
        if binding.key and binding.value is not None:
            variables[binding.key] = binding.value
    return variables


def _line(statement: str, first: int) -> int:
    """Line number of a statement without its leading empty lines."""
    return first + statement[: len(statement) - len(statement.lstrip())].count('\n')


def project_file(folder: Path) -> Path | None:
    """The nearest `habilis.toml`: in the folder or, inside a repository, in a parent up to its root."""
    repository = next((parent for parent in (folder, *folder.parents) if (parent / '.git').exists()), folder)
    for parent in (folder, *folder.parents):
        if (parent / FILE).exists():
            return parent / FILE
        if parent == repository:
            return None
    return None


def suggestion(name: str, known: Collection[str]) -> str:
    """Suffix for an error message about an unknown name: the closest match, or all names."""
    near = similar_names(name, sorted(known), n=1, cutoff=0.5)
    return f'; did you mean {near[0]}?' if near else f'; known: {", ".join(sorted(known))}'


def _read(file: Path) -> str | None:
    try:
        return read_regular_text(file, encoding='utf-8-sig')
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f'cannot read {file}: {error.strerror}'
        raise SettingsError(msg) from None
    except UnicodeDecodeError as error:
        msg = f'cannot read {file}: it is not UTF-8 (byte {error.start})'
        raise SettingsError(msg) from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
