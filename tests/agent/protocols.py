"""Runs tests with both protocols: code in fences, and code as function calls, as frontier models send it."""

from collections.abc import Sequence
from typing import Any

import pytest

from habilis.models import Message, Reply, ScriptedModel
from habilis.models.contract import Options
from tests.agent.scripts import as_call

BOTH = frozenset(
    f'tests.agent.{name}'
    for name in (
        *(
            'durable.test_approval',
            'durable.test_edits',
            'durable.test_resume',
            'durable.test_runs',
            'loop.test_code_turn',
        ),
        *('loop.test_faithfulness', 'loop.test_run', 'loop.test_tool_calls', 'parsing.test_replies'),
    )
)
"""Modules about the loop and its record, which see the protocol. What the others test is the same with both."""


@pytest.fixture(autouse=True)
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """In `call`, scripted models that do not say otherwise call functions."""
    if request.param == 'call':
        _call_functions(monkeypatch)
    return request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of the modules in `BOTH` twice; `one_protocol` marks those that name their protocol themselves."""
    once = (
        metafunc.definition.get_closest_marker('one_protocol') is not None or metafunc.function.__module__ not in BOTH
    )
    metafunc.parametrize('protocol', ['fence'] if once else ['fence', 'call'], indirect=True)


def _call_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    make, take = ScriptedModel.__init__, ScriptedModel._next  # pyright: ignore[reportPrivateUsage]

    def make_calling(self: ScriptedModel, *args: Any, **options: Any) -> None:
        make(self, *args, **{'functions': True, **options})

    async def take_call(self: ScriptedModel, messages: Sequence[Message], options: Options) -> Reply:
        reply = await take(self, messages, options)
        return as_call(reply, len(self.requests)) if options.functions else reply

    monkeypatch.setattr(ScriptedModel, '__init__', make_calling)
    monkeypatch.setattr(ScriptedModel, '_next', take_call)
