"""Fixtures of the benchmark tests."""

from tests.cli.conftest import component, fake_docker

__all__ = ['component', 'fake_docker']
