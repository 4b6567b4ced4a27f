"""Running untrusted Python: sandboxes, their results and limits."""

from habilis.core.limits import Limits
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.contract import Cell, CellError, Display, FileChange, Mount, ToolCall, Variable
from habilis.sandbox.pool import SandboxPool
from habilis.sandbox.session import Sandbox, SyncSandbox
from habilis.sandbox.snapshot import Snapshot

__all__ = [
    'Cell',
    'CellError',
    'CodeRules',
    'Display',
    'FileChange',
    'Limits',
    'Mount',
    'Sandbox',
    'SandboxPool',
    'Snapshot',
    'SyncSandbox',
    'ToolCall',
    'Variable',
]
