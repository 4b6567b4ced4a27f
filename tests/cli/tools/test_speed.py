"""`habilis tools bench` and `optimise`."""

from pathlib import Path

from habilis.forge.library.library import Library
from tests.cli.chat import code, script
from tests.cli.tools.conftest import Tools, data
from tests.forge.build.test_speedups import FAST, slow


def test_bench_compares_versions(tools: Tools, library: Library) -> None:
    library.add(slow())
    one = data(tools('bench', 'total', '--json'))
    assert [each['version'] for each in one['versions']] == [1]
    library.add(slow(), replaces=True)
    library.add(slow(), replaces=True)
    done = tools('bench', 'total')
    assert [line.split()[0] for line in done.stdout.splitlines()] == ['VERSION', '2', '3']
    assert 'medians over' in done.stderr
    chosen = data(tools('bench', 'total', '--versions', '3,1', '--json'))
    assert [each['version'] for each in chosen['versions']] == [3, 1]
    assert all(each['seconds'] > 0 < each['speedup'] for each in chosen['versions'])


def test_bench_refuses_what_is_no_version(tools: Tools) -> None:
    assert tools('bench', 'double', '--versions', '1,x').returncode == 2
    assert tools('bench', 'double', '--versions', '9').stderr == 'habilis: double has no version 9; it has 1\n'
    assert tools('bench', 'nope').returncode == 1


def test_optimise_keeps_a_faster_version(tools: Tools, library: Library, tmp_path: Path) -> None:
    library.add(slow())
    bad = FAST.replace('sum(numbers)', '0')
    done = tools('optimise', 'total', '--model', script(tmp_path, code(bad), code(FAST)))
    assert done.stdout.startswith('total: version 2 is in use, '), done.stderr
    assert 'not kept: its tests fail:\ntest_it: ' in done.stderr
    refused = tools('optimise', 'total', '--model', script(tmp_path, *[code(bad)] * 3))
    assert (refused.returncode, refused.stdout) == (1, '')
    assert 'no faster version was found; version 2 stays' in refused.stderr
