"""Ready-made hooks. Each is imported on first use, with its dependencies."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from habilis.agent.hooks.cleanup import CleanMessages
    from habilis.agent.hooks.jupyter import JupyterView
    from habilis.agent.hooks.logs import LogEvents
    from habilis.agent.hooks.terminal import TerminalView
    from habilis.agent.hooks.tokens import TokenTracker
    from habilis.agent.hooks.tracing import OpenTelemetryHook

__all__ = ['CleanMessages', 'JupyterView', 'LogEvents', 'OpenTelemetryHook', 'TerminalView', 'TokenTracker']

_HOMES = {
    'CleanMessages': 'cleanup',
    'JupyterView': 'jupyter',
    'LogEvents': 'logs',
    'OpenTelemetryHook': 'tracing',
    'TerminalView': 'terminal',
    'TokenTracker': 'tokens',
}

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            msg = f'module {__name__!r} has no attribute {name!r}'
            raise AttributeError(msg)
        from importlib import import_module

        return getattr(import_module(f'{__name__}.{home}'), name)
