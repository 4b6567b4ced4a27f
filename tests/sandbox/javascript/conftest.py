"""QuickJS, installed as for the tests of the forge."""

from tests.forge.javascript.conftest import quickjs

__all__ = ['quickjs']
