"""Optional checks of code. They give early, clear errors; they are not a security boundary."""

from habilis.sandbox.guest.policy import Policy, PolicyError, check

__all__ = ['Policy', 'PolicyError', 'check']
