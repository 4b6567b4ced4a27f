"""These tests run with both protocols."""

from tests.agent.protocols import protocol

__all__ = ['protocol']
