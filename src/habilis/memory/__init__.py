"""Conversations, facts and tasks that outlive a run, and search in them."""

from habilis.memory.context import MemoryContext, Recalled
from habilis.memory.contract import Embedder, Entry, Fact, Hit, SessionHit, SessionInfo, Task, Turn
from habilis.memory.memory import Memory

__all__ = [
    'Embedder',
    'Entry',
    'Fact',
    'Hit',
    'Memory',
    'MemoryContext',
    'Recalled',
    'SessionHit',
    'SessionInfo',
    'Task',
    'Turn',
]
