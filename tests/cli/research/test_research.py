"""`habilis research` over a folder, with a scripted model."""

import json
import re
import time
from pathlib import Path

import pytest

from habilis.agent.hooks.terminal import has_markup
from tests.cli.chat import streamed
from tests.cli.process import PATIENCE, habilis, on_terminal
from tests.models.protocol_server import ProtocolServer
from tests.research.script import make_pages
from tests.tools.web import sites
from tests.tools.web.loopback import LoopbackWeb

REPLIES = [
    '- How long is the river Kelda? | its length',
    'length of the river Kelda',
    'L2, L3',
    'none',
    'The Kelda is 412 km long [s101].',
    '# The Kelda\n## Length',
    'The Kelda is 412 km long [s101], see http://invented.example/x.',
    'The Kelda is 412 km long [s101].',
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_pages(tmp_path / 'pages')
    (tmp_path / 'script.jsonl').write_text('\n'.join(map(json.dumps, REPLIES)), encoding='utf-8')
    return tmp_path


def research(*arguments: str, script: str = 'script.jsonl') -> tuple[int, str, str]:
    journal = ('--journal', 'runs.db')
    done = habilis('research', *arguments, *journal, *(('--model', f'scripted:{script}') if script else ()))
    return done.returncode, done.stdout, done.stderr


NEW = ('How long is the Kelda?', '--effort', 'low', '--source', 'pages', '--no-web')


@pytest.mark.usefixtures('place')
def test_it_shows_its_bounds_its_plan_and_its_calls_and_prints_the_report() -> None:
    code, out, err = research(*NEW)
    assert code == 0, err
    assert 'effort low: at most 1 round of 2 sub-goals, 20 calls, 100,000 tokens' in err
    assert '4 files of' in err
    assert '1. How long is the river Kelda? [open]' in err
    assert re.search(r'write \(7 of 20 calls, [\d,]+ of 100,000 tokens\)', err)
    assert 'The Kelda is 412 km long' in out
    assert 'invented' not in out
    assert has_markup(out)


def test_the_report_is_a_file_and_the_plan_can_be_shown(place: Path) -> None:
    for name in ('report.html', 'report.pdf', 'report.md'):
        code, out, err = research(*NEW, '--out', name, '--quiet')
        assert (code, out) == (0, ''), err
    assert (place / 'report.pdf').read_bytes().startswith(b'%PDF')
    page = (place / 'report.html').read_text('utf-8')
    for id_ in re.findall(r'href="#(s\d+)"', page):
        assert f'<blockquote id="{id_}">' in page
    code, out, _ = research('--show', 'last', script='')
    assert code == 0
    assert '1. How long is the river Kelda? [done]' in out
    assert '1 note: The river Kelda, file://' in out


def test_one_that_failed_is_resumed_with_its_recorded_options_and_a_changed_plan(place: Path) -> None:
    (place / 'short.jsonl').write_text('\n'.join(map(json.dumps, REPLIES[:3])), encoding='utf-8')
    code, _, err = research(*NEW, script='short.jsonl')
    assert code == 1
    [run] = re.findall(r'resume with: habilis research --resume (\S+)', err)
    listed = habilis('runs', 'show', run, '--journal', 'runs.db')
    assert f'habilis research --resume {run}' in listed.stdout
    code, out, err = research('--resume', run, '--drop', '2')
    assert code == 0, err
    assert '## Length' in out  # the script goes on after the replies that were used
    assert 'The Kelda is 412 km long' in out
    code, again, err = research('--resume', run)
    assert again == out
    code, _, err = research('--resume', run, '--add', 'More?')
    assert 'is done, so its plan cannot be changed' in err


def test_a_cost_limit_pauses_it_and_gives_the_report_so_far(place: Path) -> None:
    usage = {'requests': 1, 'input_tokens': 10, 'output_tokens': 5, 'cost': 0.25}
    replies = [{'text': text, 'usage': usage} for text in REPLIES]
    (place / 'dear.jsonl').write_text('\n'.join(map(json.dumps, replies)), encoding='utf-8')
    code, out, err = research(*NEW, '--max-cost', '1.25', script='dear.jsonl')
    assert code == 3, err
    assert 'paused: $1.2500 were spent' in err
    assert 'not complete' in out
    assert '412 km' in out
    [run] = re.findall(r'--resume (\S+)', err)
    code, out, err = research('--resume', run, '--max-cost', '9', script='dear.jsonl')
    assert code == 0, err
    assert 'not complete' not in out


@pytest.mark.usefixtures('place')
@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        ((), 'give a goal'),
        (('Why?', '--resume', 'x'), 'give a goal'),
        (('Why?', '--add', 'More'), 'name it with --resume'),
        (('Why?', '--no-web'), 'nothing to read'),
        (('Why?', '--format', 'poem'), 'poem is not a form of a report'),
        (('Why?', '--out', 'report.docx'), 'ends with .md, .html, .pdf'),
        (('Why?', '--out', 'nowhere/report.md'), 'there is no such folder'),
    ],
)
def test_wrong_options_are_refused_before_anything_is_done(arguments: tuple[str, ...], problem: str) -> None:
    code, _, err = research(*arguments)
    assert code == 2
    assert problem in err


def test_ctrl_c_gives_the_report_so_far_and_it_can_be_resumed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ProtocolServer() as server:
        monkeypatch.setenv('OPENAI_BASE_URL', server.base_url('openai'))
        monkeypatch.setenv('OPENAI_API_KEY', 'none')
        server.will_answer(*(streamed(text) for text in REPLIES[:6]), streamed('The Kel', silent_after=1))
        options = ('--model', 'openai:tiny', '--journal', 'runs.db')
        with on_terminal('research', *NEW, *options, '--out', 'report.md') as terminal:
            terminal.wait_for('outline (6 of 20 calls')
            until_asked(server, 7)
            terminal.type('\x03')
            terminal.wait_for('stopped; this is the report so far; resume with: habilis research --resume ')
            assert terminal.exit_code() == 130
        text = (place / 'report.md').read_text('utf-8')
        assert 'not complete' in text
        assert 'The Kelda is 412 km long' in text
    code, out, err = research('--resume', 'last')
    assert code == 0, err
    assert 'not complete' not in out


def until_asked(server: ProtocolServer, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while len(server.requests) < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_web_is_searched_with_the_engine_of_the_settings_which_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackWeb({'/kelda.html': sites.generated()['/rivers/kelda.html']}) as web:
        monkeypatch.setenv('HABILIS_SEARXNG_URL', web.url)
        monkeypatch.setenv('HABILIS_WEB_HOSTS', '127.0.0.1')
        replies = [REPLIES[0], REPLIES[1], 'L1-L3', *REPLIES[4:]]
        (place / 'web.jsonl').write_text('\n'.join(map(json.dumps, replies)), encoding='utf-8')
        code, out, err = research('How long is the Kelda?', '--effort', 'low', script='web.jsonl')
        assert code == 0, err
        assert 'sources: searches with SearXNG at 127.0.0.1' in err
        assert f'(<{web.address("/kelda.html")}>)' in out
        assert 'invented.example' not in out
