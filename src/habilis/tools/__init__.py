"""What code may call: tools, toolsets, gates and approvals."""

from habilis.core.approval import Approval
from habilis.tools.context import Context
from habilis.tools.contract import (
    Allow,
    ApprovalRequest,
    Approve,
    Ask,
    CallJournal,
    Change,
    ChangeResult,
    Decision,
    Deny,
    Gate,
    GateCall,
    ModelFunction,
    NeedsAnswer,
    ResultDecision,
    ResultGate,
)
from habilis.tools.logs import log
from habilis.tools.mcp.config import read_servers
from habilis.tools.mcp.server import McpServer
from habilis.tools.tool import Tool, tool
from habilis.tools.toolbox import Toolbox
from habilis.tools.toolset import Toolset
from habilis.tools.toolsets.files import Files
from habilis.tools.toolsets.samples import samples_toolset
from habilis.tools.toolsets.shell import Shell
from habilis.tools.toolsets.shell_policy import CommandPolicy
from habilis.tools.toolsets.todo import todo_toolset
from habilis.tools.toolsets.user import people_toolset

__all__ = [
    'Allow',
    'Approval',
    'ApprovalRequest',
    'Approve',
    'Ask',
    'CallJournal',
    'Change',
    'ChangeResult',
    'CommandPolicy',
    'Context',
    'Decision',
    'Deny',
    'Files',
    'Gate',
    'GateCall',
    'McpServer',
    'ModelFunction',
    'NeedsAnswer',
    'ResultDecision',
    'ResultGate',
    'Shell',
    'Tool',
    'Toolbox',
    'Toolset',
    'log',
    'people_toolset',
    'read_servers',
    'samples_toolset',
    'todo_toolset',
    'tool',
]
