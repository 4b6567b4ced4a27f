"""Language models. Lazy: importing the message types does not load the settings."""

from importlib import import_module
from typing import TYPE_CHECKING

from habilis.models.config import ModelConfig
from habilis.models.contract import (
    Delta,
    Function,
    FunctionCall,
    Message,
    Model,
    Options,
    Recollection,
    Reply,
    Traits,
    Usage,
)
from habilis.models.files import File, Image

if TYPE_CHECKING:
    from habilis.models.loader import load_model
    from habilis.models.message_json import messages_from_json, messages_to_json
    from habilis.models.registry import Registry
    from habilis.models.scripted import ScriptedModel
    from habilis.models.usage import Ledger

__all__ = [
    'Delta',
    'File',
    'Function',
    'FunctionCall',
    'Image',
    'Ledger',
    'Message',
    'Model',
    'ModelConfig',
    'Options',
    'Recollection',
    'Registry',
    'Reply',
    'ScriptedModel',
    'Traits',
    'Usage',
    'load_model',
    'messages_from_json',
    'messages_to_json',
]

_HOMES = {
    'Ledger': 'usage',
    'Registry': 'registry',
    'ScriptedModel': 'scripted',
    'load_model': 'loader',
    'messages_from_json': 'message_json',
    'messages_to_json': 'message_json',
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            msg = f'module {__name__!r} has no attribute {name!r}'
            raise AttributeError(msg)
        value = getattr(import_module(f'{__name__}.{home}'), name)
        globals()[name] = value
        return value
