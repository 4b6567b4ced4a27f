"""Errors, limits, settings and the JSON codec, shared by all rooms."""

from habilis.core.errors import HabilisError, SandboxError
from habilis.core.limits import Limits

__all__ = ['HabilisError', 'Limits', 'SandboxError']
