"""The servers for the tests of this folder."""

from tests.journal import servers

postgres_url = servers.postgres_url
redis_url = servers.redis_url
