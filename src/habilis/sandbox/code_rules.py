"""Optional checks of code. They give early, clear errors; they are not a security boundary."""

from habilis.sandbox.guest.code_rules import CodeRules, CodeRulesError, check

__all__ = ['CodeRules', 'CodeRulesError', 'check']
