"""The `remote` backend."""

import os
from urllib.parse import urlsplit

from habilis.core.errors import SandboxError
from habilis.sandbox.contract import Guest, GuestSpec
from habilis.sandbox.remote.guest import KEY_VARIABLE, start


class RemoteBackend:
    """Guests of a server, which `habilis serve sandboxes` runs. Tools, limits and checkpoints stay on this side."""

    copies_files = True

    def __init__(self, url: str = '', key: str | None = None) -> None:
        address = urlsplit(url)
        if address.scheme not in ('http', 'https') or not address.hostname or address.query or address.username:
            msg = f'remote needs the address of a server such as http://127.0.0.1:8700, not {url!r}'
            raise SandboxError(msg)
        self._url = url
        self._key = key
        self.isolation = f'that of the server {url}'

    def start(self, spec: GuestSpec) -> Guest:
        """Start a guest on the server."""
        guest = start(self._url, self._key or os.environ.get(KEY_VARIABLE), spec)
        self.isolation = guest.isolation
        return guest
