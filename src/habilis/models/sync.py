"""One request without `await`, for scripts and notebooks; also inside a running event loop."""

import asyncio
import functools
import os
import threading
from collections.abc import Sequence

from habilis.models.contract import NO_OPTIONS, Message, Model, Options, Reply

_lock = threading.Lock()


@functools.cache
def _background_loop() -> asyncio.AbstractEventLoop:
    """One loop in a thread for all such requests, so that connections are kept between them."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name='habilis-models-sync', daemon=True).start()
    return loop


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_background_loop.cache_clear)  # a thread does not survive the fork


def request_sync(model: Model, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
    """See `Model.request`. Ctrl-C cancels it."""
    with _lock:
        loop = _background_loop()
    answer = asyncio.run_coroutine_threadsafe(model.request(messages, options), loop)
    try:
        return answer.result()
    except BaseException:
        answer.cancel()
        raise
