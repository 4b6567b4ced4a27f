"""How the SDK is pointed at a service."""

from dataclasses import dataclass
from typing import Any

KEYS = ('the key of the first', 'the key of the other')


@dataclass(frozen=True)
class Server:
    """A running service."""

    url: str

    def options(self, key: str = KEYS[0]) -> Any:
        """The options of the SDK."""
        return {'api_url': self.url, 'sandbox_url': self.url, 'api_key': key, 'retries': 0}
