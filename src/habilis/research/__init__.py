"""Research: plan, read, plan again and write a report whose every sentence has its source."""

from habilis.research.contract import Effort, PlanChange, Report, ResearchError
from habilis.research.flow import Research
from habilis.research.sources import Folder, Together
from habilis.research.state import ResearchState, read_state

__all__ = [
    'Effort',
    'Folder',
    'PlanChange',
    'Report',
    'Research',
    'ResearchError',
    'ResearchState',
    'Together',
    'read_state',
]
