"""The same place as for `habilis run`, with a journal of its own."""

from tests.cli.run.conftest import place, server

__all__ = ['place', 'server']
