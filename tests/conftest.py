"""Settings for every test."""

import contextlib
import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# A busy machine is slow, not wrong: hypothesis may take its time.
settings.register_profile('habilis', deadline=None)
settings.load_profile('habilis')

# Started in the background by a shell, a process ignores Ctrl-C, and so would the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not on the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start the command some hundred times. Where nothing compiled is kept, each time it would be compiled anew.
os.environ.pop('PYTHONDONTWRITEBYTECODE', None)

# The embedded model fetches llama.cpp from the npm registry, which the tests do not reach.
os.environ['NPM_CONFIG_OFFLINE'] = 'true'


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what is collected: half a million objects, which stay.

    It takes a quarter of the time of collecting; and then a third of a second in every full collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope='session', autouse=True)
def _no_run_is_kept_in_the_data_folder_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:  # pyright: ignore[reportUnusedFunction]
    """Agents keep their runs by default; those of the tests are kept in a folder that goes with them."""
    os.environ['HABILIS_DATA'] = str(tmp_path_factory.mktemp('data'))
