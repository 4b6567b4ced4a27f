"""Settings for every test."""

import contextlib
import signal

from hypothesis import settings

# A busy machine is slow, not wrong: hypothesis may take its time.
settings.register_profile('habilis', deadline=None)
settings.load_profile('habilis')

# Started in the background by a shell, a process ignores Ctrl-C, and so would the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not on the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
