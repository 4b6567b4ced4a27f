"""What the stores on servers have in common: addresses that are shown without passwords, SDKs that may be missing."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from habilis.core.errors import JournalError, SettingsError
from habilis.core.logs import hide, redact
from habilis.journal.contract import Durability

_SECRETS = frozenset({'password', 'sslpassword', 'ssl_password'})
_PLACES = frozenset({'host', 'port', 'dbname', 'db'})
"""What of a query is shown."""


class PackageMissing(JournalError, ImportError):
    """The SDK of a store is not installed. The message says what to install."""

    @classmethod
    def of(cls, store: str, *, extra: str, error: ImportError) -> 'PackageMissing':
        """For a store such as `PostgresStore`."""
        return cls(f"{store} needs a package that is missing ({error}): pip install 'habilis[{extra}]'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a server is."""

    url: str = field(repr=False)
    """For its SDK: with the password, without our own options."""

    shown: str
    """For people: without user and password."""

    options: dict[str, str]
    """Our own, of the query."""

    secrets: tuple[str, ...] = field(repr=False)

    def tell(self, error: BaseException) -> str:
        """What a vendor's error says, in one line that can be shown."""
        text = ' '.join(next(iter(str(error).strip().splitlines()), '').split()) or type(error).__name__
        for secret in self.secrets:
            text = re.sub(rf'(?<!\w){re.escape(secret)}(?!\w)', '***', text)
        return redact(text).rstrip('.')


def read_address(url: str, *, schemes: tuple[str, ...], options: tuple[str, ...] = ()) -> Address:
    """The parts of a URL. Raises `SettingsError`, which does not show what may be a piece of a password."""
    scheme = url.partition('://')[0]
    if '://' not in url or scheme not in schemes:
        msg = f'the address of this store begins with {" or ".join(f"{scheme}://" for scheme in schemes)}'
        raise SettingsError(msg)
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        raise _unreadable(scheme) from None
    # An unescaped / ? or # ends the part with the password, and the rest of it would be taken for something to show.
    late = parts.path if '@' in parts.netloc else parts.path + parts.query
    user, _, hosts = parts.netloc.rpartition('@')
    ports = [host.rpartition(']')[2].partition(':')[2] for host in hosts.split(',')]
    if '@' in late + parts.fragment + user or not all(port.isdigit() for port in ports if port):
        raise _unreadable(scheme)
    pieces = [piece for piece in parts.query.split('&') if piece]
    query = [(unquote(name), unquote(value)) for name, _, value in (piece.partition('=') for piece in pieces)]
    secrets = [text for text in (password, unquote(password or '')) if text]
    secrets += [value for name, value in query if name in _SECRETS and value]
    hide(secrets)

    def only(wanted: Callable[[str], bool]) -> str:
        return '&'.join(piece for piece, (name, _) in zip(pieces, query, strict=True) if wanted(name))

    return Address(
        url=_join(scheme, parts.netloc, parts.path, only(lambda name: name not in options)),
        shown=_join(scheme, hosts, parts.path, only(lambda name: name in _PLACES)),
        options={name: value for name, value in query if name in options},
        secrets=tuple(dict.fromkeys(secrets)),
    )


def durability_of(text: str) -> Durability:
    """The value of the option `durability`. Raises `SettingsError`."""
    if text in {'normal', 'full'}:
        return 'full' if text == 'full' else 'normal'
    msg = f'there is no durability {text!r}; take normal or full'
    raise SettingsError(msg)


def _join(scheme: str, netloc: str, path: str, query: str) -> str:
    return f'{scheme}://{netloc}{path}' + (f'?{query}' if query else '')


def _unreadable(scheme: str) -> SettingsError:
    return SettingsError(
        f'the {scheme}:// address of the journal cannot be read. Is there a special character in its password? '
        'Write @ as %40, / as %2F, ? as %3F, # as %23, : as %3A and % as %25'
    )
