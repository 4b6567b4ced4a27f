"""Runs that are killed anywhere and gone on with."""

import pytest

pytest.register_assert_rewrite('tests.crash.killing')
