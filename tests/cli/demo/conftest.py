"""The same place as for `habilis run`."""

from tests.cli.task.conftest import place, server

__all__ = ['place', 'server']
