"""The embedded model: weights from a catalogue, and llama.cpp inside this process to run them."""

from habilis.models.local.installing import ensure_installed, install
from habilis.models.local.model import LocalModel
from habilis.models.local.store import remove

__all__ = ['LocalModel', 'ensure_installed', 'install', 'remove']
