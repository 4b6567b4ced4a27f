"""Checks a user may switch on. They give early, clear errors; the sandbox, not they, keeps code in."""

from habilis.sandbox.guest.policy import Policy

__all__ = ['Policy']
