"""What code may call: tools, toolsets, gates and approvals."""

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
from habilis.tools.files import files_toolset
from habilis.tools.logs import log
from habilis.tools.people import people_toolset
from habilis.tools.samples import samples_toolset
from habilis.tools.todo import todo_toolset
from habilis.tools.tool import Tool, tool
from habilis.tools.toolbox import Toolbox
from habilis.tools.toolset import Toolset

__all__ = [
    'Allow',
    'ApprovalRequest',
    'Approve',
    'Ask',
    'CallJournal',
    'Change',
    'ChangeResult',
    'Decision',
    'Deny',
    'Gate',
    'GateCall',
    'ModelFunction',
    'NeedsAnswer',
    'ResultDecision',
    'ResultGate',
    'Tool',
    'Toolbox',
    'Toolset',
    'files_toolset',
    'log',
    'people_toolset',
    'samples_toolset',
    'todo_toolset',
    'tool',
]
