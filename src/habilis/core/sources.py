"""Where settings come from: arguments, environment, `.env`, and two `habilis.toml`. Read here, judged in `settings.py`.

This is the one place of the room that reads files.
"""

import json
import logging
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, cast

from habilis.core.errors import SettingsError

Source = Literal['argument', 'environment', '.env', 'project', 'user', 'default']
"""`project` is the `habilis.toml` of the current folder or repository, `user` that of the configuration folder."""

PREFIX = 'HABILIS_'
FILE = 'habilis.toml'
OTHER_VARIABLES = frozenset({'HABILIS_CACHE', 'HABILIS_CATALOGUE', 'HABILIS_DATA', 'HABILIS_TRACEBACK'})
"""Read elsewhere, and no settings."""

PLAIN_VARIABLES = {'LOG_LEVEL': 'log_level', 'ENABLE_RESPONSE_CACHE': 'response_cache'}
"""Names without the prefix that many programs share. The name with the prefix wins."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A value of a setting, and where it was found."""

    value: object
    source: Source
    place: str
    """For people: `HABILIS_MODEL`, `.env:HABILIS_MODEL` or `habilis.toml:model`, with the folder of the file."""


Layer = Mapping[str, Placed]
"""The settings of one source."""


def from_arguments(arguments: Mapping[str, object], known: Collection[str]) -> Layer:
    """The arguments of a call. None is as not given."""
    for name in arguments.keys() - set(known):
        msg = f'there is no setting {name!r}{suggestion(name, known)}'
        raise SettingsError(msg)
    return {
        name: Placed(value=value, source='argument', place=f'the argument {name}')
        for name, value in arguments.items()
        if value is not None
    }


def from_variables(variables: Mapping[str, str], known: Collection[str], *, file: Path | None = None) -> Layer:
    """Environment variables, or those of a `.env` file. An empty one is as not set."""
    layer: dict[str, Placed] = {}
    where = f'{file}:' if file else ''
    names = {variable: name for variable, name in PLAIN_VARIABLES.items() if name in known}
    names |= {f'{PREFIX}{name.upper()}': name for name in known}
    for variable, name in names.items():
        if text := variables.get(variable, '').strip():
            place = f'{where}{variable}'
            value = _json(text, place) if name == 'models' else text
            layer[name] = Placed(value=value, source='.env' if file else 'environment', place=place)
    for variable in sorted(variables):
        if variable.startswith(PREFIX) and variable not in names and variable not in OTHER_VARIABLES:
            _log.warning('%s%s is not a setting%s', where, variable, suggestion(variable, names))
    return layer


def _json(text: str, place: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # the text may hold a key, so it is not shown
        where = f' at character {error.pos}' if isinstance(error, json.JSONDecodeError) else ''
        msg = f'{place} is not JSON{where}: expected an object of aliases, {{"fast": {{"model": "provider:model"}}}}'
        raise SettingsError(msg) from None


def from_toml(file: Path, source: Literal['project', 'user'], known: Collection[str]) -> Layer:
    """A `habilis.toml`. One that is missing has no settings; one that cannot be read is an error."""
    text = _read(file)
    if text is None:
        return {}
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f'{file} is not TOML: {_first_line(error)}'
        raise SettingsError(msg) from None
    for name in table.keys() - set(known):
        msg = f'{file}:{name} is not a setting{suggestion(name, known)}'
        raise SettingsError(msg)
    return {
        name: Placed(value=cast('object', value), source=source, place=f'{file}:{name}')
        for name, value in table.items()
    }


def read_variables(file: Path) -> dict[str, str]:
    """The variables of a `.env` file, exactly as written: `$` has no meaning in it."""
    text = _read(file)
    if text is None:
        return {}
    from io import StringIO

    from dotenv.parser import parse_stream

    variables: dict[str, str] = {}
    for binding in parse_stream(StringIO(text)):
        if binding.error:  # the line may hold a key, so it is not shown
            msg = f'{file}, line {_line(binding.original.string, binding.original.line)}: expected NAME=value'
            raise SettingsError(msg)
        if binding.key and binding.value is not None:
            variables[binding.key] = binding.value
    return variables


def _line(statement: str, first: int) -> int:
    """The line of the first thing in a statement, which begins with the empty lines before it."""
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
    """The end of a sentence about a name that is unknown."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f'; did you mean {near[0]}?' if near else f'; there are {", ".join(sorted(known))}'


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding='utf-8-sig')
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
