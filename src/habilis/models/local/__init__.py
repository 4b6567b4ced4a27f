"""The embedded model: weights from a catalogue, run by llama.cpp in this process."""

from habilis.models.local.engine_build import ensure_engine
from habilis.models.local.installation import ensure_installed, install
from habilis.models.local.model import LocalModel
from habilis.models.local.store import remove

__all__ = ['LocalModel', 'ensure_engine', 'ensure_installed', 'install', 'remove']
