"""`habilis run` with tools, packages, hosts and a workspace."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.chat import code, script
from tests.cli.process import habilis
from tests.place import Place
from tests.sandbox.packages.test_installation import make_wheel
from tests.tools.web import sites
from tests.tools.web.loopback import LoopbackWeb

TOOLS = """
from habilis import tool
def double(number: int) -> int:
    '''Twice as much.'''
    return 2 * number
@tool
def half(number: int) -> float:
    '''Half as much.'''
    return number / 2
both = [double, half]
nothing = 3
"""


@pytest.fixture
def package(place: Place) -> Path:
    """A package in a folder."""
    folder = place.folder / 'lib' / 'greetings' / 'greeting'
    folder.mkdir(parents=True)
    (folder / '__init__.py').write_text("WORD = 'hello'\n")
    return folder


@pytest.mark.parametrize('names', [('things:double', 'things:half'), ('things:both',), ('things:double,things:half',)])
def test_tools_are_functions_of_a_module_in_the_current_folder(place: Place, names: tuple[str, ...]) -> None:
    (place.folder / 'things.py').write_text(TOOLS)
    model = script(place.folder, code('final_answer(half(double(21)))'))
    options = [word for name in names for word in ('--tools', name)]
    done = habilis('run', 'Do it', '-q', '-m', model, *options)
    assert (done.returncode, done.stdout) == (0, '21.0\n'), done.stderr


@pytest.mark.parametrize(
    ('name', 'complaint'),
    [
        ('things', "'things' is not MODULE:NAME, such as my_tools:search, or web"),
        ('nothing_there:double', 'cannot load nothing_there:double: ModuleNotFoundError'),
        ('things:triple', "cannot load things:triple: AttributeError: module 'things' has no attribute 'triple'"),
        ('things:nothing', 'things:nothing is of type int, not a function, a Toolset or a list of them'),
    ],
)
def test_a_tool_that_cannot_be_loaded_is_named(place: Place, name: str, complaint: str) -> None:
    (place.folder / 'things.py').write_text(TOOLS)
    done = habilis('run', 'Do it', '-m', script(place.folder, 'Fine.'), '--tools', name)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in ' '.join(done.stderr.split())
    assert '--tools' in done.stderr


def test_packages_tools_and_hosts_are_restored_when_the_run_is_resumed(
    place: Place, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / 'things.py').write_text(TOOLS)
    model = script(place.folder, code('x = 1'), code('import greeting\nfinal_answer((greeting.WORD, double(x)))'))
    options = ('--tools', 'things:double', '--packages', 'lib/greetings', '--network', 'example.test,a.test')
    done = habilis('run', 'Do it', '-m', model, *options, '--max-steps', '1', '--run-id', 'run-1')
    assert done.returncode == 3, done.stderr
    assert 'resume with: habilis runs resume run-1' in done.stderr
    elsewhere = place.folder / 'elsewhere'
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = habilis('runs', 'resume', 'run-1', '-q', '--max-steps', '5')
    assert (done.returncode, done.stdout) == (0, "('hello', 2)\n"), done.stderr


def test_an_imported_run_gets_no_tools_of_this_machine(place: Place) -> None:
    (place.folder / 'things.py').write_text(TOOLS)
    model = script(place.folder, code('x = 1'), 'Fine.')
    options = ('--tools', 'things:double', '--max-steps', '1', '--run-id', 'run-1')
    assert habilis('run', 'Do it', '-q', '-m', model, *options).returncode == 3
    assert habilis('runs', 'export', 'run-1', '-o', 'run.json').returncode == 0
    assert habilis('runs', 'import', 'run.json', '--run-id', 'copy').returncode == 0
    done = habilis('runs', 'resume', 'copy')
    assert (done.returncode, done.stdout) == (1, '')
    assert 'this imported run had tools or network access' in done.stderr


def test_the_prompt_lists_packages_hosts_and_files(place: Place, package: Path) -> None:
    (place.folder / 'data').mkdir()
    (place.folder / 'data' / 'sales\x1b.csv').write_text('a,b\n')
    model = script(place.folder, 'Fine.', 'Fine.')
    options = ('--packages', 'lib/greetings', '--network', 'example.test', '-w', 'data', '--run-id', 'run-1')
    assert habilis('run', 'Do it', '-q', '-m', model, *options).returncode == 0
    shown = json.loads(habilis('runs', 'export', 'run-1', '--format', 'jsonl').stdout.splitlines()[0])
    system, task = shown['messages'][0]['content'], shown['messages'][1]['content']
    assert 'The standard library and greetings are there' in system
    assert 'network access to example.test' in system
    assert 'sales' not in system
    assert "Your code runs in the folder /workspace, which has: 'sales\\x1b.csv' (4 bytes)." in task


def test_network_and_no_network_exclude_each_other(place: Place) -> None:
    done = habilis('run', 'Do it', '--network', 'a.test', '--no-network')
    assert done.returncode == 2
    assert 'leave out --network or --no-network' in done.stderr


def test_a_workspace_that_does_not_exist_is_refused_with_the_nearest_name(place: Place) -> None:
    (place.folder / 'data').mkdir()
    model = script(place.folder, 'Fine.', 'Fine.')
    done = habilis('run', 'Do it', '-m', model, '-w', 'dta')
    assert (done.returncode, done.stdout) == (2, '')
    assert 'there is no folder dta; did you mean data? Use --create to make it' in ' '.join(done.stderr.split())
    assert not (place.folder / 'dta').exists()
    assert habilis('run', 'Do it', '-q', '-m', model, '-w', 'dta', '--create').stdout == 'Fine.\n'
    assert (place.folder / 'dta').is_dir()


def test_a_hint_for_the_developer_is_shown_and_not_sent(place: Place) -> None:
    model = script(place.folder, code("import socket\nsocket.create_connection(('example.test', 80))"), 'No.')
    done = habilis('run', 'Do it', '-m', model, '--run-id', 'run-1')
    assert '(this sandbox has no network: pass network=True, or --network at the command line)' in done.stderr
    shown = habilis('runs', 'export', 'run-1', '--format', 'jsonl').stdout
    assert 'there is no network here: use the data and the functions that you have' in shown
    assert 'network=True' not in shown


def test_tools_of_a_library_are_used_and_restored_when_the_run_is_resumed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert habilis('tools', 'seed', '--library', 'tools').returncode == 0
    model = script(place.folder, code('x = percent_of(15, 300)'), code('final_answer(percent_of(10, x))'))
    done = habilis('run', '15 percent of 300', '-m', model, '--library', 'tools', '--max-steps', '1', '--run-id', 'r')
    assert done.returncode == 3, done.stderr
    elsewhere = place.folder / 'elsewhere'
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = habilis('runs', 'resume', 'r', '-q', '--max-steps', '5')
    assert (done.returncode, done.stdout) == (0, '4.5\n'), done.stderr


def test_a_library_that_is_a_file_is_refused(place: Place) -> None:
    (place.folder / 'tools').write_text('')
    done = habilis('run', 'Do it', '-m', script(place.folder, 'Fine.'), '--library', 'tools')
    assert (done.returncode, done.stdout) == (2, '')
    assert 'is a file, not a folder' in ' '.join(done.stderr.split())


@pytest.mark.skipif(sys.platform != 'linux', reason='needs the process backend')
def test_packages_with_native_code_run_in_a_process(place: Place) -> None:
    wheel = str(make_wheel(place.folder, 'native', 'WORD = "hello"\n', more={'native_inner/fast.so': 'ELF'}))
    model = script(place.folder, code('import native\nfinal_answer(native.WORD)'))
    done = habilis('run', 'Do it', '-m', model, '--packages', wheel)
    assert (done.returncode, done.stdout) == (0, 'hello\n'), done.stderr
    assert 'sandbox: process, because the packages need native code' in done.stderr
    done = habilis('run', 'Do it', '-m', model, '--packages', wheel, '--sandbox', 'wasm')
    assert done.returncode == 1
    assert "Agent(sandbox='process'" in ' '.join(done.stderr.split())


def test_a_run_may_search_and_read_the_web_and_says_with_what(place: Place) -> None:
    with LoopbackWeb(sites.generated()) as web:
        place.environment(HABILIS_SEARXNG_URL=web.url, HABILIS_WEB_HOSTS='127.0.0.1')
        act = "final_answer('412 km' in read_page(search_web('river Kelda rises')[0]['url']))"
        done = habilis('run', 'Do it', '-m', script(place.folder, code(act)), '--tools', 'web')
    assert (done.returncode, done.stdout.strip()) == (0, 'True'), done.stderr
    assert f'web: searches with SearXNG at {web.url.removeprefix("http://")}' in done.stderr
