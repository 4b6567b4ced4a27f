"""Running untrusted Python: sandboxes, their results and limits."""

from habilis.core.limits import Limits
from habilis.sandbox.contract import Cell, CellError, Display, FileChange, Mount, ToolCall, Variable
from habilis.sandbox.policy import Policy
from habilis.sandbox.pool import SandboxPool
from habilis.sandbox.session import Sandbox, SyncSandbox
from habilis.sandbox.snapshot import Snapshot

__all__ = [
    'Cell',
    'CellError',
    'Display',
    'FileChange',
    'Limits',
    'Mount',
    'Policy',
    'Sandbox',
    'SandboxPool',
    'Snapshot',
    'SyncSandbox',
    'ToolCall',
    'Variable',
]
