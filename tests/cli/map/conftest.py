"""A place without settings, keys and models, with a program whose agent leaves traces."""

import os
from pathlib import Path

import pytest

from habilis.core.folders import cache_folder
from tests.place import Place

PROGRAM = '''
import os
import time
from dataclasses import replace
from pathlib import Path

from habilis import Agent, ScriptedModel
from habilis.core.errors import ModelError
from habilis.models.contract import Reply, Usage

HERE = Path(__file__).parent


def mark(name: str) -> str:
    """Leave a trace, and wait while a file says so."""
    with (HERE / 'effects').open('ab', buffering=0) as file:
        file.write(f'{name} {os.getpid()}\\n'.encode())
    while (HERE / f'hold-{name}').exists():
        time.sleep(0.01)
    return name


def reply(messages):
    turn = sum(message.role == 'assistant' for message in messages)
    if (HERE / 'broken').exists() and turn == 1 and 'odd' in str(messages):
        raise ModelError('the model is broken')
    code = ['mark(f"{name}-1")', 'mark(f"{name}-2")', 'final_answer(name.upper())'][min(turn, 2)]
    if turn >= 2 and (HERE / 'endless').exists() and 'odd' in str(messages):
        code = 'print(1)'
    return Reply(text=f'```python\\n{code}\\n```', usage=Usage(requests=1, input_tokens=9, cost=0.25))


class Paid(ScriptedModel):
    @property
    def traits(self):
        return replace(super().traits, local=False)  # a local one is stopped at the end of its code, and costs nothing


agent = Agent(Paid(reply), tools=[mark], limits=None)
'''


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty folder to be in. The cache is the usual one: building an interpreter takes too long for a test."""
    cache = cache_folder()
    here = Place(tmp_path, monkeypatch)
    monkeypatch.setenv('HABILIS_CACHE', os.fspath(cache))
    (here.folder / 'jobs.py').write_text(PROGRAM, 'utf-8')
    return here
