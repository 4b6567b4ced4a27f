"""Options of a sandbox backend, the same for `habilis run`, `habilis chat` and `habilis sandbox`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from habilis.cli.options import not_empty
from habilis.core.errors import SettingsError

if TYPE_CHECKING:
    from habilis.sandbox.options import BackendSettings

Image = Annotated[
    str | None,
    typer.Option('--sandbox-image', metavar='IMAGE', help='Image for --sandbox docker.', callback=not_empty),
]
Url = Annotated[
    str | None,
    typer.Option(
        '--sandbox-url',
        metavar='URL',
        help='Server for --sandbox remote; its key is read from HABILIS_SANDBOX_KEY.',
        callback=not_empty,
    ),
]
AllowWeak = Annotated[
    bool, typer.Option('--allow-weak', help='Let --sandbox process run where the system offers no isolation.')
]

_OPTIONS = (
    ('image', 'sandbox_image', 'docker'),
    ('url', 'sandbox_url', 'remote'),
    ('allow_weak', 'allow_weak', 'process'),
)
"""Settings of `Sandbox.create`, their options, and a backend that has them."""


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """What was given. There is none for a key, which others could see: backends read theirs from the environment."""

    image: str | None = None
    url: str | None = None
    allow_weak: bool = False

    @property
    def given(self) -> 'BackendSettings':
        """Those that were given, as settings of `Sandbox.create`."""
        settings: BackendSettings = {}
        if self.image is not None:
            settings['image'] = self.image
        if self.url is not None:
            settings['url'] = self.url
        if self.allow_weak:
            settings['allow_weak'] = True
        return settings

    def check(self, backend: str) -> None:
        """Raise `SettingsError` for an option that this backend does not have."""
        known = _settings_of(backend) if self.given else frozenset[str]()
        for name, option, example in _OPTIONS:
            if name in self.given and name not in known:
                msg = f'the argument {option} is not for the sandbox {backend}; add --sandbox {example}'
                raise SettingsError(msg)

    def settings_for(self, backend: str) -> 'BackendSettings':
        """The settings that this backend takes. Raises `SettingsError` if the server is missing."""
        if backend == 'remote' and self.url is None:
            msg = 'the sandbox remote needs the address of its server: add --sandbox-url http://127.0.0.1:8700'
            raise SettingsError(msg)
        given = self.given
        for name in given.keys() - (_settings_of(backend) if given else ()):
            del given[name]
        return given


def _settings_of(backend: str) -> frozenset[str]:
    from habilis.sandbox.backends import settings_of

    return settings_of(backend) if backend != 'auto' else frozenset()
