"""The settings of the services."""

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from habilis.core.errors import SettingsError
from habilis.core.limits import Limits
from habilis.server.users import Users

LOCAL = 'local'
"""The owner of all sandboxes where no key is needed."""

MIN_KEY = 16


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """Where a service listens, who may call it, and how often."""

    host: str = '127.0.0.1'
    port: int = 8700
    keys: tuple[str, ...] = field(default=(), repr=False)
    """Each caller has one of these; without any, the service is open to this machine, and to nobody else."""

    requests_per_second: float = 100.0
    """Of each key; twice as many may come at once."""

    connections: int = 1000
    """Connections at once. Beyond, one that waits for its request is closed for each new one."""

    per_caller: int = 250
    """Connections of one address, and requests at once of one key. A `remote` sandbox takes one as long as it lives."""

    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose `X-Forwarded-For` names the client. Nobody else's is believed."""

    body_bytes: int = 64 << 20
    """Maximum size of the body of a request."""

    body_seconds: float = 30.0
    """How long a client may take to send the head of a request, and again to send the body."""

    certificate: str | None = None
    certificate_key: str | None = None
    """For HTTPS: files in PEM."""

    def __post_init__(self) -> None:
        self._check_callers()
        if short := [key for key in self.keys if len(key) < MIN_KEY]:
            msg = f'a key needs {MIN_KEY} characters or more; one has {len(short[0])}'
            raise SettingsError(msg)
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                msg = f'a trusted proxy is an address or a network such as 10.0.0.0/8: {error}'
                raise SettingsError(msg) from None

    def _check_callers(self) -> None:
        """Raise `SettingsError` if strangers could call."""
        if not self.keys and not is_loopback(self.host):
            msg = f'a key is needed to serve on {self.host}: pass --key (or set HABILIS_SERVER_KEY), or use 127.0.0.1'
            raise SettingsError(msg)

    def is_proxy(self, address: str) -> bool:
        """Whether connections from this address are those of a proxy, for many clients."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in ipaddress.ip_network(proxy) for proxy in self.trusted_proxies)

    def owner(self, key: str | None) -> str | None:
        """The name of the caller with this key; None if it is not one of ours. Takes the same time for every key."""
        if not self.keys:
            return LOCAL
        given = (key or '').encode('utf-8', 'replace')
        found = None
        for known in self.keys:
            if hmac.compare_digest(given, known.encode()):
                found = hashlib.sha256(known.encode()).hexdigest()[:12]
        return found


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(HttpSettings):
    """What the sandbox service runs, for whom, and how much of it."""

    backend: str = 'wasm'
    backend_settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """Settings of the backend, such as `image`."""

    e2b: bool = False
    """Whether E2B's SDK may use the service, too: its sandboxes have a shell, whatever the backend."""

    limits: Limits = field(
        default_factory=lambda: Limits(seconds=600, memory_mb=1024, output_bytes=10 << 20, calls=10_000)
    )
    """The largest limits that a caller can have."""

    sandboxes_per_key: int = 100
    sandboxes: int = 400
    idle_seconds: float = 900.0
    """A sandbox that was not used for so long is closed."""

    resume_seconds: float = 60.0
    """How long a guest waits for its client after the connection was lost."""


@dataclass(frozen=True, kw_only=True)
class AssistantSettings(HttpSettings):
    """For whom the assistant is."""

    port: int = 8800
    users: Users
    """Those who have a token; without any, it is for the user of this machine alone."""

    user: str = ''
    """That user."""

    plain_http: bool = False
    """Whether other machines may be served without encryption."""

    def _check_callers(self) -> None:
        if is_loopback(self.host):
            return
        if not self.users.names():
            msg = f'to serve on {self.host}, let somebody in first: habilis serve token add NAME'
            raise SettingsError(msg)
        if not self.certificate and not self.plain_http:
            msg = (
                f'tokens would be readable on the way to {self.host}: pass --certificate and --certificate-key, '
                'or --plain-http behind a proxy that encrypts'
            )
            raise SettingsError(msg)

    def owner(self, key: str | None) -> str | None:
        """See `HttpSettings`."""
        return self.users.find(key) if self.users.names() else self.user


def is_loopback(host: str) -> bool:
    """Whether a host name or address is that of this machine only."""
    if host == 'localhost':
        return True
    try:
        return ipaddress.ip_address(host.strip('[]')).is_loopback
    except ValueError:
        return False
