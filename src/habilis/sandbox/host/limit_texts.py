"""What is told of a cell that has reached a limit: the limit with its number."""

from habilis.core.limits import Limits
from habilis.sandbox.contract import ErrorKind


def limit_text(kind: ErrorKind, limits: Limits, seconds: float) -> str:
    """The limit that was reached, of a cell with `seconds` of time; empty if the kind is not a limit."""
    return {
        'time': f'the time limit of {seconds:g} s was reached',
        'memory': f'the memory limit of {limits.memory_mb:,} MB was reached',
        'output': f'the output limit of {limits.output_bytes:,} bytes was reached',
        'calls': f'the limit of {limits.calls:,} tool calls in one cell was reached',
        'cancelled': 'the cell was cancelled',
    }.get(kind, '')
