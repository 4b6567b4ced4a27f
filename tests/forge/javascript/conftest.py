"""QuickJS, fetched from the npm registry once, into the cache of the user."""

import asyncio

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.javascript.installation import javascript_engine
from tests.requirements import missing


@pytest.fixture(scope='session')
def quickjs() -> None:
    """Install it; the tests that need it are skipped where there is no registry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('NPM_CONFIG_OFFLINE', 'false')
        try:
            asyncio.run(javascript_engine())
        except ForgeError as error:
            missing('registry', str(error))
