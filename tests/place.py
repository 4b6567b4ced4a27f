"""A place without settings: an empty folder, an empty configuration folder, and no variable that matters."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

OURS = ('LOG_LEVEL', 'ENABLE_RESPONSE_CACHE')
ENDINGS = ('_API_KEY', '_BASE_URL', '_TOKEN', '_HOST', '_BEDROCK')


class Place:
    """Where a test is, and how it sets something in each source of settings."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in os.environ:
            if name.startswith('HABILIS_') or name in OURS or name.endswith(ENDINGS):
                monkeypatch.delenv(name)
        self.folder = folder / 'project'
        self.config = folder / 'config'
        self.folder.mkdir()
        monkeypatch.chdir(self.folder)
        monkeypatch.setenv('XDG_CONFIG_HOME', str(self.config))
        monkeypatch.setenv('HABILIS_CACHE', str(folder / 'cache'))
        monkeypatch.setenv('HABILIS_DATA', str(folder / 'data'))
        self._monkeypatch = monkeypatch

    def environment(self, **variables: str) -> None:
        """Set variables."""
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def dotenv(self, text: str) -> Path:
        """Write `.env`."""
        file = self.folder / '.env'
        file.write_text(text, encoding='utf-8')
        return file

    def project(self, text: str) -> Path:
        """Write the `habilis.toml` of the project."""
        file = self.folder / 'habilis.toml'
        file.write_text(text, encoding='utf-8')
        return file

    def user(self, text: str) -> Path:
        """Write the `habilis.toml` of the user."""
        file = self.config / 'habilis' / 'habilis.toml'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding='utf-8')
        return file


def as_variable(value: object) -> str:
    """A value as it is written in a variable."""
    if isinstance(value, tuple | list):
        return ','.join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return value if isinstance(value, str) else json.dumps(value)


def as_toml(value: object) -> str:
    """A value as it is written in TOML: as JSON, apart from tables."""
    if isinstance(value, Mapping):
        inside = ', '.join(f'{name} = {as_toml(item)}' for name, item in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return f'{{ {inside} }}'
    return json.dumps(value)
