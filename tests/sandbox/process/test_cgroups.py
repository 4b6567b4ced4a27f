"""Control groups of guests, in the real file system of the machine, as far as its controllers allow."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from habilis.core.limits import Limits
from habilis.sandbox import backends
from habilis.sandbox.contract import GuestSpec
from habilis.sandbox.process import cgroups
from habilis.sandbox.process.backend import ProcessBackend
from habilis.sandbox.session import Sandbox
from tests.waiting import until


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[cgroups.Groups]:
    """Groups without the controllers, which this machine may have given to version 1."""
    monkeypatch.setattr(cgroups, 'NEEDED', frozenset[str]())
    cgroups.find_groups.cache_clear()
    backends.backend.cache_clear()
    found = cgroups.find_groups()
    if found is None:
        pytest.skip('this user may not make control groups')
    yield found
    cgroups.find_groups.cache_clear()
    backends.backend.cache_clear()


def own_groups(groups: cgroups.Groups) -> list[Path]:
    return list(groups.parent.glob(f'{cgroups.PREFIX}{os.getpid()}-*'))


async def test_each_guest_and_each_fork_has_a_group_which_is_removed(groups: cgroups.Groups) -> None:
    async with await Sandbox.create('process') as sandbox:
        assert 'limits by cgroups' in sandbox.isolation
        await sandbox.run("import subprocess\nchild = subprocess.Popen(['sleep', '60'])")
        [group] = own_groups(groups)
        assert len((group / 'cgroup.procs').read_text().split()) >= 3
        await sandbox.run('child.kill(); child.wait(); del child')
        async with await sandbox.fork() as twin:
            assert len(own_groups(groups)) == 2
            assert all((group / 'cgroup.procs').read_text() for group in own_groups(groups))
            assert (await twin.run('6 * 7')).value == 42
    groups.make(Limits()).close()  # removes what was still ending before
    assert len(own_groups(groups)) <= 1


async def test_a_start_without_a_group_leaves_no_descriptor(tmp_path: Path) -> None:
    backend = ProcessBackend()
    backend.start(GuestSpec()).close()
    backend._level = replace(backend._level, groups=cgroups.Groups(tmp_path / 'gone', frozenset()))  # pyright: ignore[reportPrivateUsage]
    before = len(os.listdir('/proc/self/fd'))
    with pytest.raises(FileNotFoundError):
        backend.start(GuestSpec())
    await until(lambda: len(os.listdir('/proc/self/fd')) <= before)


def test_groups_of_hosts_that_were_killed_are_removed(groups: cgroups.Groups) -> None:
    abandoned = groups.parent / f'{cgroups.PREFIX}{2**22 + 1}-0'
    abandoned.mkdir()
    cgroups.find_groups.cache_clear()
    assert cgroups.find_groups() == groups
    assert not abandoned.exists()


def test_the_limits_are_written(tmp_path: Path) -> None:
    for name in ('memory.max', 'memory.swap.max', 'pids.max', 'cpu.max'):
        (tmp_path / name).touch()
    group = cgroups.Group.__new__(cgroups.Group)
    group.folder = tmp_path
    group.limit(Limits(memory_mb=100, cpu=0.5), frozenset({'memory', 'pids', 'cpu'}))
    assert (tmp_path / 'memory.max').read_text() == str(300 << 20)
    assert (tmp_path / 'pids.max').read_text() == str(cgroups.MAX_PROCESSES)
    assert (tmp_path / 'cpu.max').read_text() == '50000 100000'
