"""Addresses of database servers: parse URLs, keep passwords out of messages, and report missing packages."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from habilis.core.errors import JournalError, SettingsError
from habilis.core.secrets import hide, redact
from habilis.journal.contract import Durability

_SECRETS = frozenset({'password', 'sslpassword', 'ssl_password'})
_SHOWN = frozenset({'host', 'port', 'dbname', 'db'})
"""Options of the query that messages may show."""


class StorePackageMissing(JournalError, ImportError):
    """A package that a store needs is not installed. The message says what to install."""

    @classmethod
    def of(cls, store: str, *, extra: str, error: ImportError) -> 'StorePackageMissing':
        """The error for a store such as `PostgresStore`."""
        return cls(f"{store} needs a package that is not installed ({error}): pip install 'habilis[{extra}]'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The address of a server."""

    url: str = field(repr=False)
    """The URL for the client library: with the password, without our own options."""

    shown: str
    """The URL for messages: without user and password."""

    options: dict[str, str]
    """Our own options in the query."""

    secrets: tuple[str, ...] = field(repr=False)

    def describe_error(self, error: BaseException) -> str:
        """The message of an error of the client library in one line, without secrets."""
        text = ' '.join(next(iter(str(error).strip().splitlines()), '').split()) or type(error).__name__
        for secret in self.secrets:
            text = re.sub(rf'(?<!\w){re.escape(secret)}(?!\w)', '***', text)
        return redact(text).rstrip('.')


def parse_address(url: str, *, schemes: tuple[str, ...], options: tuple[str, ...] = ()) -> Address:
    """Parse a URL. Raises `SettingsError`, whose message shows nothing that may be part of a password."""
    scheme = url.partition('://')[0]
    if '://' not in url or scheme not in schemes:
        msg = f'the URL of this store must begin with {" or ".join(f"{scheme}://" for scheme in schemes)}'
        raise SettingsError(msg)
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        raise _invalid(scheme) from None
    # An unescaped / ? or # in a password ends it early, and the rest of it would be shown as path or query.
    rest = parts.path if '@' in parts.netloc else parts.path + parts.query
    user, _, hosts = parts.netloc.rpartition('@')
    ports = [host.rpartition(']')[2].partition(':')[2] for host in hosts.split(',')]
    if '@' in rest + parts.fragment + user or not all(port.isdigit() for port in ports if port):
        raise _invalid(scheme)
    pieces = [piece for piece in parts.query.split('&') if piece]
    query = [(unquote(name), unquote(value)) for name, _, value in (piece.partition('=') for piece in pieces)]
    secrets = [text for text in (password, unquote(password or '')) if text]
    secrets += [value for name, value in query if name in _SECRETS and value]
    hide(secrets)

    def filtered(keep: Callable[[str], bool]) -> str:
        return '&'.join(piece for piece, (name, _) in zip(pieces, query, strict=True) if keep(name))

    return Address(
        url=_join(scheme, parts.netloc, parts.path, filtered(lambda name: name not in options)),
        shown=_join(scheme, hosts, parts.path, filtered(lambda name: name in _SHOWN)),
        options={name: value for name, value in query if name in options},
        secrets=tuple(dict.fromkeys(secrets)),
    )


def parse_durability(text: str) -> Durability:
    """The value of the option `durability`. Raises `SettingsError`."""
    if text in {'normal', 'full'}:
        return 'full' if text == 'full' else 'normal'
    msg = f'{text!r} is not a valid durability: use normal or full'
    raise SettingsError(msg)


def _join(scheme: str, netloc: str, path: str, query: str) -> str:
    return f'{scheme}://{netloc}{path}' + (f'?{query}' if query else '')


def _invalid(scheme: str) -> SettingsError:
    return SettingsError(
        f'the {scheme}:// URL of the journal is not valid. Is there a special character in its password? '
        'Write @ as %40, / as %2F, ? as %3F, # as %23, : as %3A and % as %25'
    )
