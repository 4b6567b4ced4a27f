"""One request without `await`, for scripts and notebooks; also inside a running event loop."""

from collections.abc import Sequence

from habilis.core.waiting import wait_for
from habilis.models.contract import NO_OPTIONS, Message, Model, Options, Reply


def request_sync(model: Model, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
    """See `Model.request`. Ctrl-C cancels it. All such requests share an event loop, so connections are kept."""
    return wait_for(model.request(messages, options))
