"""Errors, limits, settings and the JSON codec, shared by all rooms."""

from habilis.core.errors import HabilisError, ModelRetry, SandboxError
from habilis.core.limits import Limits

__all__ = ['HabilisError', 'Limits', 'ModelRetry', 'SandboxError']
