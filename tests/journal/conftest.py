"""The servers for the tests of this folder."""

from tests.journal.servers import postgres_url as postgres_url
from tests.journal.servers import redis_url as redis_url
