"""`python -m benchmarks`: options, output and exit codes."""

import pytest

from tests.benchmarks.process import benchmarks, python


@pytest.mark.parametrize(
    ('name', 'flags', 'returned'),
    [
        ('sandbox', (), 0),
        *((name, ('--check',), 1) for name in ('sandbox', 'agent', 'journal', 'forge', 'mcp', 'server')),
    ],
)
def test_a_missed_target_is_an_error_only_with_check(name: str, flags: tuple[str, ...], returned: int) -> None:
    code = (
        f'import sys\nfrom benchmarks.{name} import suite\nfrom tests.benchmarks import reports\n'
        'async def measure(**_): return reports.report(reports.MISSED)\n'
        f'suite.measure = measure\nsys.argv = ["benchmarks", {name!r}, *{flags!r}]\n'
        'import benchmarks.__main__'
    )
    done = python('-c', code)
    assert done.returncode == returned, done.stderr
    assert 'targets missed: sandboxes' in done.stdout


def test_without_a_benchmark_there_is_help() -> None:
    done = benchmarks()
    assert done.returncode == 2
    assert 'sandbox' in done.stdout + done.stderr


@pytest.mark.parametrize(
    ('options', 'complaint'),
    [
        (('--postgres', 'foo'), '--postgres: the URL of this store must begin with postgres'),
        (('--redis', 'foo'), '--redis: the URL of this store must begin with redis'),
        (('--peer-python', '/nope'), '--peer-python: /nope is not an executable program'),
    ],
)
def test_an_invalid_option_is_reported_before_anything_is_measured(options: tuple[str, ...], complaint: str) -> None:
    done = benchmarks('journal', '--quick', *options)
    assert (done.returncode, done.stdout) == (2, '')
    assert complaint in ' '.join(done.stderr.split())
    assert 'measuring' not in done.stderr
