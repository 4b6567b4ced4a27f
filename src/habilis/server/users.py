"""The people that a server lets in: a file with the digests of their tokens."""

import hashlib
import json
import os
import secrets
import tempfile
from pathlib import Path

from habilis.core.errors import SettingsError
from habilis.core.narrowing import is_dict


class Users:
    """Names and tokens. The file is read again when it has changed, so that a token is revoked at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[int, dict[str, str]] = (0, {})

    def names(self) -> list[str]:
        """Those who have a token."""
        return sorted(self._digests())

    def find(self, token: str | None) -> str | None:
        """Whose token this is; None if it is nobody's."""
        digest = _digest(token or '')
        return next((name for name, known in self._digests().items() if known == digest), None)

    def add(self, name: str) -> str:
        """A new token for a user. One that they had is no longer valid."""
        token = secrets.token_urlsafe(32)
        self._write({**self._digests(), name: _digest(token)})
        return token

    def revoke(self, name: str) -> bool:
        """Let a user in no longer. False if they had no token."""
        digests = self._digests()
        found = digests.pop(name, None) is not None
        if found:
            self._write(digests)
        return found

    def _digests(self) -> dict[str, str]:
        try:
            changed = self._path.stat().st_mtime_ns
        except OSError:
            return {}
        if changed != self._read[0]:
            self._read = changed, self._parsed()
        return dict(self._read[1])

    def _parsed(self) -> dict[str, str]:
        try:
            found = json.loads(self._path.read_text(encoding='utf-8'))
        except (OSError, ValueError) as error:
            msg = f'{self._path} cannot be read: {error}. Mend it, or remove it and give new tokens'
            raise SettingsError(msg) from None
        known = found if is_dict(found) else {}
        return {str(name): str(digest) for name, digest in known.items()}

    def _write(self, digests: dict[str, str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._path.parent)  # which nobody else may read
        with os.fdopen(handle, 'w', encoding='utf-8') as file:
            json.dump(digests, file, indent=1)
        os.replace(name, self._path)


def _digest(token: str) -> str:
    """Tokens are long and random, so a plain digest tells nothing about them."""
    return hashlib.sha256(token.encode('utf-8', 'replace')).hexdigest()
