"""The same place as for `habilis run`."""

from tests.cli.run.conftest import place, server

__all__ = ['place', 'server']
