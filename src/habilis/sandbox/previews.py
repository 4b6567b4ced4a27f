"""Short texts of values in records of calls."""

from habilis.core.previews import shorten

__all__ = ['RESULT_LENGTH', 'shorten']

RESULT_LENGTH = 200
"""Max characters of a result in the record of a call."""
