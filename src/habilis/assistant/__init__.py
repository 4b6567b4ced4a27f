"""A conversation that remembers: agent, memory, tasks and workspace history, without a screen; see `contract.py`."""

from habilis.assistant.contract import (
    FilesEdited,
    SessionEvent,
    TurnAbandoned,
    TurnEnded,
    TurnStarted,
    Unfinished,
    View,
)
from habilis.assistant.file_edits import FileEdit
from habilis.assistant.modes import MODES, Mode
from habilis.assistant.session import Session

__all__ = [
    'MODES',
    'FileEdit',
    'FilesEdited',
    'Mode',
    'Session',
    'SessionEvent',
    'TurnAbandoned',
    'TurnEnded',
    'TurnStarted',
    'Unfinished',
    'View',
]
