"""The append-only record of a run, from which a resumed run replays what was already done."""

from habilis.journal.contract import Lease, Record, RunInfo, Status, Store
from habilis.journal.journal import Journal, OnChange
from habilis.journal.scope import Paused, Scope, current_scope, recording_scope
from habilis.journal.stores.memory import MemoryStore
from habilis.journal.values import Codec, fingerprint

__all__ = [
    'Codec',
    'Journal',
    'Lease',
    'MemoryStore',
    'OnChange',
    'Paused',
    'Record',
    'RunInfo',
    'Scope',
    'Status',
    'Store',
    'current_scope',
    'fingerprint',
    'recording_scope',
]
