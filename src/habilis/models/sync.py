"""Synchronous requests, for scripts and notebooks. Work inside a running event loop too."""

from collections.abc import Sequence

from habilis.core.background_loop import run_blocking
from habilis.models.contract import NO_OPTIONS, Message, Model, Options, Reply


def request_sync(model: Model, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
    """Blocking `Model.request`. Ctrl-C cancels it. All calls share one event loop, so connections are reused."""
    return run_blocking(model.request(messages, options))
