"""Errors, limits and the plain-data codec: what every room shares."""

from habilis.core.errors import HabilisError, SandboxError
from habilis.core.limits import Limits

__all__ = ['HabilisError', 'Limits', 'SandboxError']
