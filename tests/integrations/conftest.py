from collections.abc import Iterator
from typing import Any

import pytest

from habilis.sandbox import Sandbox
from habilis.sandbox.host.interpreter import Interpreter


@pytest.fixture(autouse=True)
def every_sandbox_is_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the end of each test, all sandboxes that it has started are closed."""
    started: list[Sandbox] = []
    start = Sandbox.__init__

    def noted(self: Sandbox, interpreter: Interpreter, options: Any) -> None:
        start(self, interpreter, options)
        started.append(self)

    monkeypatch.setattr(Sandbox, '__init__', noted)
    yield
    assert [sandbox for sandbox in started if not sandbox.closed] == []
