"""Proposes tools to delete: those that are never called, and those that often fail."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from habilis.core.errors import ForgeError
from habilis.forge.contract import Manifest
from habilis.forge.library.library import Library
from habilis.forge.library.usage import ToolUsage

UNUSED_DAYS = 90
"""A tool that was not called for so long is proposed for retirement."""

MIN_CALLS = 5
FAILED_SHARE = 0.5
"""So is one that fails as often as this, after so many calls."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A tool that may be deleted, and why."""

    name: str
    reason: str


def proposals(library: Library, *, now: datetime | None = None) -> list[Proposal]:
    """Tools that are proposed for retirement. A tool that others use is not unused."""
    oldest = (now or datetime.now(UTC)) - timedelta(days=UNUSED_DAYS)
    usage = {(one.name, one.version): one for one in library.usage.read()}
    manifests = [made for name in library.names() if (made := _manifest(library, name))]
    needed = {name for made in manifests for name in made.uses}
    found: list[Proposal] = []
    for made in manifests:
        used = usage.get((made.name, made.version))
        if used and used.calls >= MIN_CALLS and used.failed >= FAILED_SHARE * used.calls:
            found.append(Proposal(name=made.name, reason=f'{used.failed} of {used.calls} calls failed'))
        elif made.name not in needed and max(made.created, _last_call(used)) < oldest:
            found.append(Proposal(name=made.name, reason=f'not called for {UNUSED_DAYS} days'))
    return found


def _manifest(library: Library, name: str) -> Manifest | None:
    """None if it is damaged; the doctor names those."""
    try:
        return library.manifest(name)
    except ForgeError:
        return None


def _last_call(used: ToolUsage | None) -> datetime:
    return datetime.fromisoformat(used.last).replace(tzinfo=UTC) if used else datetime.min.replace(tzinfo=UTC)
