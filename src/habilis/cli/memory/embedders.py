"""The embedder that the settings name."""

from importlib.util import find_spec

from habilis.core.errors import RememberError
from habilis.core.settings import Settings
from habilis.memory.contract import Embedder
from habilis.memory.minilm import MiniLm, find_embedder

SECONDS = 20.0
RETRIES = 1
"""Of a request to a provider. A search goes on without it, and later entries are embedded later."""


def choose_embedder(settings: Settings) -> Embedder | None:
    """That of the setting `embedder`; by default the one for this machine, if it is installed; None without one.

    Nothing is loaded or sent yet. Raises `HabilisError`.
    """
    match settings.embedder:
        case None:
            return find_embedder()
        case 'off':
            return None
        case 'minilm':
            try:
                return MiniLm()
            except ImportError as error:
                raise RememberError(str(error)) from None
        case name:
            if find_spec('numpy') is None:
                msg = "search by meaning needs numpy: pip install 'habilis[embeddings]', or set the embedder to off"
                raise RememberError(msg)
            from habilis.models.embeddings import ProviderEmbedder

            return ProviderEmbedder(name, timeout=SECONDS, retries=RETRIES, settings=settings)
