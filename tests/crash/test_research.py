"""`habilis research` is killed again and again: its report is the same, and nothing that was finished is done twice."""

import subprocess
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from habilis.journal import Codec
from habilis.journal.index import name_of
from habilis.journal.lookup import value_of
from habilis.journal.stores.urls import open_store
from habilis.models.contract import Message
from habilis.research.page_archive import FETCH, FETCHED
from habilis.research.requests import ModelAnswer
from tests.cli.chat import streamed
from tests.cli.process import COMMAND, PATIENCE, environment
from tests.models.protocol_server import Answer, Asked, ProtocolServer
from tests.research.script import GOAL, Scholar
from tests.tools.web import sites
from tests.tools.web.loopback import LoopbackWeb

KILLS = 10
_ANSWER: Codec[ModelAnswer] = Codec(ModelAnswer)


class ScholarServer(ProtocolServer):
    """The scripted researcher behind OpenAI's protocol. Each prompt costs another number of tokens: its name."""

    def __init__(self) -> None:
        super().__init__()
        self._script = Scholar(greedy=True)
        self._prompts: dict[str, int] = {}

    def next_answer(self, asked: Asked) -> Answer:
        """As the script says."""
        self.requests.append(asked)
        reply = self._script([Message(role='user', text=_prompt(asked))])
        return streamed(reply, tokens=self.tokens_of(asked))

    def tokens_of(self, asked: Asked) -> int:
        """What the answer to a request costs."""
        return self._prompts.setdefault(_prompt(asked), 100 + len(self._prompts))


def _prompt(asked: Asked) -> str:
    return str(asked.json['messages'][-1]['content'])


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A model, a web, and the folder in which the command runs."""

    folder: Path
    model: ScholarServer
    web: LoopbackWeb

    def start(self, *arguments: str, run: str) -> subprocess.Popen[bytes]:
        """Start the command, with a journal and a report named after its run."""
        env = {
            'OPENAI_BASE_URL': self.model.base_url('openai'),
            'OPENAI_API_KEY': 'none',
            'HABILIS_SEARXNG_URL': self.web.url,
            'HABILIS_WEB_HOSTS': '127.0.0.1',
        }
        options = ('--model', 'openai:tiny', '--journal', f'{run}.db', '--out', f'{run}.md', '--quiet')
        return subprocess.Popen([*COMMAND, 'research', *arguments, *options], cwd=self.folder, env=environment(env))

    def report(self, run: str) -> str:
        return (self.folder / f'{run}.md').read_text('utf-8')

    @property
    def asked(self) -> Counter[str]:
        """How often each page, and the answer to each prompt, was asked for so far."""
        pages = [self.web.address(one.path) for one in self.web.requests if one.path in self.web.pages]
        return Counter([*pages, *(str(self.model.tokens_of(one)) for one in self.model.requests)])

    def wait(self, process: subprocess.Popen[bytes], requests: int) -> None:
        """Until so many pages and answers were asked for, or the process has ended."""
        end = time.monotonic() + PATIENCE
        while self.asked.total() < requests and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.002)

    async def finished(self, run: str) -> Counter[str]:
        """The same of the steps that are recorded as done."""
        store = open_store(str(self.folder / f'{run}.db'))
        found: Counter[str] = Counter()
        for info in await store.runs():
            for record in await store.load(info.run):
                name = name_of(record.path)
                if record.kind != 'done' or not name.startswith((FETCH, 'ask ')):
                    continue
                value = await value_of(store, info.run, record)
                if name == FETCH:
                    found.update(page.url for page in FETCHED.read(value).pages)
                else:
                    found[str(_ANSWER.read(value).spent.tokens)] += 1
        await store.close()
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Generator[Scene]:
    with ScholarServer() as model, LoopbackWeb(sites.generated()) as web:
        yield Scene(folder=tmp_path, model=model, web=web)


@pytest.mark.crash
async def test_killed_ten_times_the_report_is_the_same_and_nothing_finished_is_done_twice(scene: Scene) -> None:
    new = (GOAL, '--effort', 'medium')
    assert scene.start(*new, run='whole').wait(PATIENCE) == 0
    whole = await scene.finished('whole')
    assert scene.asked == whole
    for kill in range(KILLS + 1):
        before, finished = scene.asked, await scene.finished('killed')
        process = scene.start(*(new if kill == 0 else ('--resume', 'last')), run='killed')
        if kill < KILLS:
            scene.wait(process, before.total() + 3 + kill)  # in a search, a fetch, a call of the model, or a write
            process.kill()
        assert process.wait(PATIENCE) == (-9 if kill < KILLS else 0), f'process {kill}'
        assert scene.asked - before <= whole - finished, f'process {kill}'
    assert await scene.finished('killed') == whole
    assert scene.report('killed') == scene.report('whole')
