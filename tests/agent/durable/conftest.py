"""These tests run with both protocols."""

from tests.agent.protocols import protocol, pytest_generate_tests

__all__ = ['protocol', 'pytest_generate_tests']
