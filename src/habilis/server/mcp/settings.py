"""The settings of the MCP server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from habilis.server.settings import ServiceSettings

if TYPE_CHECKING:
    from habilis.forge.library.library import Library
    from habilis.journal import Store
    from habilis.sandbox.options import SandboxSettings

SESSIONS = 100
REQUEST_BYTES = 4 << 20


def _no_settings() -> 'SandboxSettings':
    return {}


@dataclass(frozen=True, kw_only=True)
class McpSettings:
    """What clients are offered."""

    sandbox: 'SandboxSettings' = field(default_factory=_no_settings)
    """Settings of the sandboxes of the tool `python`, as for `Sandbox.create`."""

    library: 'Library | None' = None
    """A tool library, whose tools are offered, too."""

    open_journal: 'Callable[[], Store] | None' = None
    """Opens the journal whose runs are offered as resources; it is opened for each request. None: none are."""

    user: str = ''
    """Whose runs of the journal these are."""

    service: ServiceSettings = field(
        default_factory=lambda: ServiceSettings(backend='auto', sandboxes=SESSIONS, body_bytes=REQUEST_BYTES)
    )
    """Backend and number of the sandboxes, and how long one may be idle; for HTTP also address, keys and sizes."""
