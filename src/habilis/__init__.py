"""Habilis: an agent that acts by writing Python, in a sandbox that starts in milliseconds.

The package root is lazy: `import habilis` loads no dependency, and each name below is imported when it is first used.
"""

from typing import TYPE_CHECKING

from habilis._version import __version__

if TYPE_CHECKING:
    from habilis.agent import Agent, Chat, Result, RunLimits
    from habilis.core import HabilisError, Limits, ModelRetry
    from habilis.flows import FlowPaused, Workflow, approval, flow, parallel, step
    from habilis.models import File, Image, ModelConfig, ScriptedModel
    from habilis.sandbox import Cell, CellError, CodeRules, Sandbox, SandboxPool
    from habilis.tools import Context, Toolset, tool

__all__ = [
    'Agent',
    'Cell',
    'CellError',
    'Chat',
    'CodeRules',
    'Context',
    'File',
    'FlowPaused',
    'HabilisError',
    'Image',
    'Limits',
    'ModelConfig',
    'ModelRetry',
    'Result',
    'RunLimits',
    'Sandbox',
    'SandboxPool',
    'ScriptedModel',
    'Toolset',
    'Workflow',
    '__version__',
    'approval',
    'flow',
    'parallel',
    'step',
    'tool',
]

_HOMES = {
    'Agent': 'habilis.agent',
    'Cell': 'habilis.sandbox',
    'CellError': 'habilis.sandbox',
    'Chat': 'habilis.agent',
    'Context': 'habilis.tools',
    'File': 'habilis.models',
    'FlowPaused': 'habilis.flows',
    'HabilisError': 'habilis.core',
    'Image': 'habilis.models',
    'Limits': 'habilis.core',
    'ModelConfig': 'habilis.models',
    'ModelRetry': 'habilis.core',
    'CodeRules': 'habilis.sandbox',
    'Result': 'habilis.agent',
    'RunLimits': 'habilis.agent',
    'Sandbox': 'habilis.sandbox',
    'SandboxPool': 'habilis.sandbox',
    'ScriptedModel': 'habilis.models',
    'Toolset': 'habilis.tools',
    'Workflow': 'habilis.flows',
    'approval': 'habilis.flows',
    'flow': 'habilis.flows',
    'parallel': 'habilis.flows',
    'step': 'habilis.flows',
    'tool': 'habilis.tools',
}

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise _missing(name)
        from importlib import import_module

        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def _missing(name: str) -> Exception:
    import sys

    from habilis.core.wrong_names import WRONG_NAMES, missing_attribute

    # Of an AttributeError, `from habilis import …` keeps nothing, so it gets the hint in an error of its own.
    is_import = sys._getframe(2).f_code.co_name == '_handle_fromlist'  # pyright: ignore[reportPrivateUsage]
    if is_import and name in WRONG_NAMES[__name__]:
        return ImportError(f'cannot import name {name!r} from {__name__!r}: {WRONG_NAMES[__name__][name]}', name=name)
    return missing_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOMES.keys())
