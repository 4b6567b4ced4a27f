"""`habilis serve`: what cannot be served is said in one line."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from habilis.forge.library.library import Library
from habilis.memory.minilm import find_embedder
from tests.cli.process import habilis
from tests.forge.samples import tool
from tests.place import Place

REVERSE = tool('reverse_string', 'return text[::-1]', head='(text: str) -> str')


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--host', '0.0.0.0'], 'a key is needed to serve on 0.0.0.0: pass --key'),
        (['--key', 'short'], 'a key needs 16 characters or more'),
        (['--backend', 'nothing'], "there is no sandbox backend called 'nothing'"),
        (['--trusted-proxy', '*'], 'a trusted proxy is an address or a network such as 10.0.0.0/8'),
        (['--image', 'x'], "the sandbox backend 'wasm' has no setting 'image'"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], said: str) -> None:
    done = habilis('serve', 'sandboxes', *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize('what', [[], ['sandboxes']])
def test_without_its_packages_it_says_how_to_install_them(what: list[str], tmp_path: Path) -> None:
    program = tmp_path / 'without.py'
    hidden = "import sys\nsys.modules |= {'starlette': None, 'uvicorn': None}\n"
    program.write_text(f'{hidden}from habilis.cli.main import main\nmain()\n')
    done = habilis('serve', *what, fresh=True, program=str(program))
    assert done.returncode == 2
    assert 'pip install "habilis[server]"' in done.stderr


def test_it_serves_until_it_is_stopped() -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        done = habilis('serve', 'sandboxes', '--port', str(taken.getsockname()[1]))
        assert 'choose another --port' in done.stderr
    command = [sys.executable, '-m', 'habilis', 'serve', 'sandboxes', '--port', '0']
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, 'HABILIS_SERVER_KEY': ''})
    assert server.stderr is not None
    address = next(word for word in server.stderr.readline().split() if word.startswith('http://'))
    with urllib.request.urlopen(f'{address}/v1/health', timeout=600) as answer:
        assert b'"status":"ok"' in answer.read()
    server.send_signal(signal.SIGINT)
    assert server.wait(20) == 0
    assert 'Traceback' not in server.stderr.read()
    server.stderr.close()


def test_the_page_opens_and_needs_neither_model_nor_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch)
    browser, opened = place.folder / 'browser', place.folder / 'opened'
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    Library(place.folder / 'tools').add(REVERSE)
    place.environment(HABILIS_CACHE=os.fspath(place.folder / 'empty'), BROWSER=os.fspath(browser))
    command = [sys.executable, '-m', 'habilis', 'serve', '--port', '0', '--open', '--library', 'tools']
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    assert 'SCRIPTED' in server.stderr.readline()
    address = next(word for word in server.stderr.readline().split() if word.startswith('http://'))
    with urllib.request.urlopen(f'{address}/api/settings', timeout=600) as answer:
        settings = json.load(answer)
    assert (settings['model'], settings['is_scripted']) == ('scripted:examples', True)
    assert 'habilis models install' in settings['models'][-1]['why']
    if find_embedder() is not None:
        with urllib.request.urlopen(f'{address}/api/tools?q=the+letters+back+to+front', timeout=600) as answer:
            assert [one['name'] for one in json.load(answer)['tools']] == ['reverse_string'], 'found by meaning'
    while not opened.exists():
        time.sleep(0.01)
    assert opened.read_text() == f'{address}\n'
    server.send_signal(signal.SIGINT)
    assert server.wait(60) == 0
    server.stderr.close()
