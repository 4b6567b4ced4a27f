"""The seccomp filter for both architectures, evaluated here: the kernel of this machine runs only one of them."""

import errno
import fcntl
import os
import socket
import stat
import struct
from types import SimpleNamespace

import pytest

from habilis.sandbox.process import seccomp
from habilis.sandbox.process.kernel_calls import CLONE, FORK_FLAGS

PID = 4321
ALLOWED, KILLED, ASKED = 'allowed', 'killed', 'asked'
CALLS = {
    'open': (2, None), 'openat': (257, 56), 'creat': (85, None), 'mknodat': (259, 33), 'fchmodat2': (452, 452),
    'mkdirat': (258, 34), 'mmap': (9, 222), 'fcntl': (72, 25), 'ioctl': (16, 29), 'socket': (41, 198),
    'socketpair': (53, 199), 'connect': (42, 203), 'bind': (49, 200), 'sendto': (44, 206), 'sendmsg': (46, 211),
    'prctl': (157, 167), 'sched_setaffinity': (203, 122), 'sched_setattr': (314, 274), 'sched_setparam': (142, 118),
    'sched_getaffinity': (204, 123), 'sched_setscheduler': (144, 119), 'prlimit64': (302, 261), 'tgkill': (234, 131),
    'clone': (56, 220), 'execve': (59, 221), 'read': (0, 63), 'getxattr': (191, 8), 'utimensat': (280, 88),
    'shmat': (30, 196), 'semctl': (66, 191), 'msgrcv': (70, 188), 'mq_unlink': (241, 181), 'semget': (64, 190),
    'inotify_init1': (294, 26), 'pidfd_open': (434, 434), 'openat2': (437, 437), 'clone3': (435, 435),
    'getsockopt': (55, 209), 'vmsplice': (278, 75), 'io_setup': (206, 0),
}  # fmt: skip
"""Numbers of system calls on x86_64 and aarch64, from the tables of the kernel and not from the filter."""

TMPFILE = 0o20000000
DIRECTORY = {'x86_64': 0o200000, 'aarch64': 0o40000}


@pytest.fixture(params=['x86_64', 'aarch64'])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(os, 'uname', lambda: SimpleNamespace(machine=str(request.param)))
    return str(request.param)


def verdict(machine: str, name: str | int, *arguments: int, alone: bool = False, forks: bool = False) -> int | str:
    """What the filter says to a call: allowed, killed, asked, or the number of an error (0: done, without effect)."""
    architecture, column = seccomp.MACHINES[machine]
    number = CALLS[name][column] if isinstance(name, str) else name
    if number is None:
        pytest.skip(f'{machine} has no {name}')
    words = [argument & (1 << 64) - 1 for argument in (*arguments, *[0] * 6)][:6]
    data = struct.pack('=IIQ6Q', number, architecture, 0, *words)
    program = seccomp.seccomp_filter(alone_with_pid=PID if alone else None, forks=forks)
    result = evaluate(program, data)
    action, value = result & 0xFFFF0000, result & 0xFFFF
    return {0x7FFF0000: ALLOWED, 0x80000000: KILLED, 0x7FC00000: ASKED, 0x00050000: value}[action]


def evaluate(program: bytes, data: bytes) -> int:
    """Run a program of classic BPF, as far as the filter uses it."""
    instructions = list(struct.iter_unpack('=HBBI', program))
    accumulator = at = 0
    while True:
        code, if_true, if_false, value = instructions[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from('=I', data, value)[0]
            case 0x54:
                accumulator &= value
            case 0x06:
                return value
            case 0x15 | 0x25 | 0x45:
                holds = {0x15: accumulator == value, 0x25: accumulator > value, 0x45: bool(accumulator & value)}[code]
                at += if_true if holds else if_false
            case _:
                raise AssertionError(f'unknown instruction {code:#x}')


LEVELS = pytest.mark.parametrize('alone', [False, True])


@LEVELS
def test_each_listed_call_is_refused_and_ordinary_ones_are_not(machine: str, alone: bool) -> None:
    column = seccomp.MACHINES[machine][1]
    numbers = [numbers[column] for numbers in seccomp.DENIED.values()]
    assert {verdict(machine, number, alone=alone) for number in numbers if number is not None} == {errno.EPERM}
    assert verdict(machine, 'read', alone=alone) == ALLOWED
    assert verdict(machine, 'mkdirat', -100, 0, 0o7777, alone=alone) == ALLOWED  # the kernel ignores these bits of it
    assert verdict(machine, seccomp.NEWEST + 1, alone=alone) == errno.ENOSYS
    assert verdict(machine, 0x40000000 | 59, alone=alone) == errno.ENOSYS  # x32
    assert {verdict(machine, name, alone=alone) for name in ('openat2', 'clone3')} == {errno.ENOSYS}


def test_another_architecture_is_killed(machine: str) -> None:
    assert evaluate(seccomp.seccomp_filter(), struct.pack('=IIQ6Q', 59, 0x40000003, *[0] * 7)) == 0x80000000


@LEVELS
@pytest.mark.parametrize('bits', [stat.S_ISUID, stat.S_ISGID, stat.S_ISUID | stat.S_ISGID])
def test_no_file_is_created_setuid(machine: str, bits: int, alone: bool) -> None:
    mode = bits | 0o755
    for creation in (0o100, TMPFILE | DIRECTORY[machine], TMPFILE):
        assert verdict(machine, 'openat', -100, 0, 0o2 | creation, mode, alone=alone) == errno.EPERM
        assert verdict(machine, 'openat', -100, 0, 0o2 | creation, 0o755, alone=alone) == ALLOWED
        if machine == 'x86_64':
            assert verdict(machine, 'open', 0, 0o2 | creation, mode, alone=alone) == errno.EPERM
            assert verdict(machine, 'creat', 0, mode, alone=alone) == errno.EPERM
    assert verdict(machine, 'openat', -100, 0, 0, mode, alone=alone) == ALLOWED  # the mode has no meaning then
    assert verdict(machine, 'openat', -100, 0, DIRECTORY[machine], mode, alone=alone) == ALLOWED
    assert verdict(machine, 'mknodat', -100, 0, stat.S_IFREG | mode, alone=alone) == errno.EPERM
    assert verdict(machine, 'fchmodat2', -100, 0, mode, alone=alone) == (0 if alone else errno.EPERM)


@LEVELS
def test_shared_memory_without_a_file_is_refused_and_other_memory_is_not(machine: str, alone: bool) -> None:
    shared, private, anonymous, huge = 1, 2, 0x20, 0x40000
    assert verdict(machine, 'mmap', 0, 4096, 3, shared | anonymous, -1, alone=alone) == errno.EPERM
    assert verdict(machine, 'mmap', 0, 4096, 3, private | anonymous | huge, -1, alone=alone) == errno.EPERM
    assert verdict(machine, 'mmap', 0, 4096, 3, private | anonymous, -1, alone=alone) == ALLOWED
    assert verdict(machine, 'mmap', 0, 4096, 3, shared, 5, alone=alone) == ALLOWED


@LEVELS
def test_a_file_cannot_be_leased(machine: str, alone: bool) -> None:
    for command in (fcntl.F_SETLEASE, 1040):
        assert verdict(machine, 'fcntl', 3, command, 1, alone=alone) == errno.EPERM
    for command in (fcntl.F_SETFL, fcntl.F_DUPFD_CLOEXEC, fcntl.F_SETLK, fcntl.F_GETFD):
        assert verdict(machine, 'fcntl', 3, command, 1, alone=alone) == ALLOWED


def test_signals_are_not_sent_by_way_of_a_descriptor(machine: str) -> None:
    for command in (fcntl.F_SETOWN, 15):
        assert verdict(machine, 'fcntl', 3, command, PID + 1, alone=True) == errno.EPERM
    for request in (
        0x8901,
        0x8902,
        0x5412,
        0x40086602,
        0x40806685,
    ):  # FIOSETOWN, SIOCSPGRP, TIOCSTI, attributes, verity
        assert verdict(machine, 'ioctl', 3, request, alone=True) == errno.EPERM
    for request in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A):
        assert verdict(machine, 'ioctl', 3, request, alone=True) == ALLOWED


def test_alone_a_pair_of_sockets_is_a_stream(machine: str) -> None:
    for flags in (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK):
        assert verdict(machine, 'socketpair', socket.AF_UNIX, socket.SOCK_STREAM | flags, alone=True) == ALLOWED
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            assert verdict(machine, 'socketpair', socket.AF_UNIX, kind | flags, alone=True) == errno.EPERM
    assert verdict(machine, 'socketpair', 30, socket.SOCK_STREAM, alone=True) == errno.EPERM  # TIPC
    for name in ('socket', 'connect', 'bind'):
        assert verdict(machine, name, socket.AF_UNIX, socket.SOCK_STREAM, alone=True) == errno.EPERM
    assert verdict(machine, 'socketpair', socket.AF_UNIX, socket.SOCK_DGRAM) == ALLOWED


def test_alone_the_signal_at_the_death_of_the_host_stays(machine: str) -> None:
    assert verdict(machine, 'prctl', 1, 0, alone=True) == errno.EPERM
    assert verdict(machine, 'prctl', 1 | 1 << 32, 0, alone=True) == errno.EPERM  # the kernel ignores the upper half
    assert verdict(machine, 'prctl', 62, 1, PID + 1, alone=True) == errno.EPERM
    assert verdict(machine, 'prctl', 15, 0, alone=True) == ALLOWED  # the name of a thread
    assert verdict(machine, 'prctl', 1, 0) == ALLOWED


@pytest.mark.parametrize('name', ['sched_setaffinity', 'sched_setattr', 'sched_setparam', 'prlimit64', 'tgkill'])
def test_alone_only_the_own_process_is_changed(machine: str, name: str) -> None:
    for pid in (0, PID):
        assert verdict(machine, name, pid, alone=True) == ALLOWED
    for pid in (1, PID + 1, -1, PID << 32 | 1):
        assert verdict(machine, name, pid, alone=True) == errno.EPERM
    assert verdict(machine, 'sched_getaffinity', PID + 1, alone=True) == ALLOWED


def test_alone_nothing_that_processes_share_is_reached_by_its_number(machine: str) -> None:
    for name in ('shmat', 'semctl', 'msgrcv', 'mq_unlink', 'inotify_init1', 'pidfd_open', 'execve'):
        assert verdict(machine, name, alone=True) == errno.EPERM
    assert verdict(machine, 'getxattr', alone=True) == errno.ENOTSUP
    assert verdict(machine, 'utimensat', alone=True) == 0
    assert verdict(machine, 'clone', 17, alone=True) == errno.EPERM
    assert verdict(machine, 'clone', 0x10000 | 0x900, alone=True) == ALLOWED


def test_the_fork_of_a_guest_is_decided_by_the_broker(machine: str) -> None:
    assert CALLS['clone'][seccomp.MACHINES[machine][1]] == CLONE[machine]
    assert verdict(machine, 'clone', FORK_FLAGS, forks=True) == ASKED
    assert verdict(machine, 'clone', FORK_FLAGS) == errno.EPERM
    assert verdict(machine, 'clone', 17) == ALLOWED
