"""The seccomp filter, as BPF instructions: system calls that the code inside is refused.

The guest installs it itself, before any code of a cell or of a package runs.
"""

import errno
import os
import struct

from habilis.sandbox.process.kernel_calls import CLONE, FORK_FLAGS

MACHINES = {'x86_64': (0xC000003E, 0), 'aarch64': (0xC00000B7, 1)}
"""Number of the architecture, and column of its system calls in the tables below."""

NEWEST = 470
"""Newer system calls than these are not known here, and refused."""

_LOAD, _EQUAL, _GREATER, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERROR, _NOTIFY = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NAMESPACES = 0x7E020080
_CLONE_THREAD = 0x10000
_SET_ID = 0o6000
_CREATE = 0o100 | 0o20000000
"""Flags with which a file is created: O_CREAT, and that of O_TMPFILE which no other flag has."""

_SHARED_ANONYMOUS, _HUGE_PAGES = 0x21, 0x40000
_SET_OWNER, _SET_OWNER_EX, _SET_LEASE, _SET_DELEGATION = 8, 15, 1024, 1040
_DEATH_SIGNAL, _CORE_SCHEDULING = 1, 62
_UNIX, _STREAM = 1, 1

DENIED: dict[str, tuple[int, int | None]] = {
    # other processes
    'ptrace': (101, 117), 'process_vm_readv': (310, 270), 'process_vm_writev': (311, 271), 'kcmp': (312, 272),
    'pidfd_getfd': (438, 438), 'process_madvise': (440, 440),
    # mounts and namespaces
    'mount': (165, 40), 'umount2': (166, 39), 'pivot_root': (155, 41), 'chroot': (161, 51), 'open_tree': (428, 428),
    'move_mount': (429, 429), 'fsopen': (430, 430), 'fsconfig': (431, 431), 'fsmount': (432, 432),
    'fspick': (433, 433), 'mount_setattr': (442, 442), 'statmount': (457, 457), 'listmount': (458, 458),
    'open_tree_attr': (467, 467), 'listns': (470, 470), 'unshare': (272, 97), 'setns': (308, 268),
    # files by handle, which no mount limits
    'open_by_handle_at': (304, 265), 'name_to_handle_at': (303, 264), 'fanotify_init': (300, 262),
    # large attack surface in the kernel
    'bpf': (321, 280), 'perf_event_open': (298, 241), 'userfaultfd': (323, 282), 'io_uring_setup': (425, 425),
    'io_uring_enter': (426, 426), 'io_uring_register': (427, 427), 'keyctl': (250, 219), 'add_key': (248, 217),
    'request_key': (249, 218), 'personality': (135, 92), 'migrate_pages': (256, 238), 'move_pages': (279, 239),
    'io_setup': (206, 0),
    # memory that no limit counts
    'shmget': (29, 194), 'memfd_create': (319, 279), 'memfd_secret': (447, 447), 'semget': (64, 190),
    'msgget': (68, 186), 'vmsplice': (278, 75),
    # the machine
    'init_module': (175, 105), 'finit_module': (313, 273), 'delete_module': (176, 106), 'kexec_load': (246, 104),
    'kexec_file_load': (320, 294), 'reboot': (169, 142), 'swapon': (167, 224), 'swapoff': (168, 225),
    'sethostname': (170, 161), 'setdomainname': (171, 162), 'settimeofday': (164, 170), 'clock_settime': (227, 112),
    'clock_adjtime': (305, 266), 'adjtimex': (159, 171), 'acct': (163, 89), 'quotactl': (179, 60),
    'quotactl_fd': (443, 443), 'syslog': (103, 116), 'vhangup': (153, 58), 'lookup_dcookie': (212, 18),
    'iopl': (172, None), 'ioperm': (173, None), 'modify_ldt': (154, None), 'uselib': (134, None),
}  # fmt: skip

_NO_PROCESSES = {
    'fork': (57, None), 'vfork': (58, None), 'execve': (59, 221), 'execveat': (322, 281), 'socket': (41, 198),
    'kill': (62, 129), 'tkill': (200, 130), 'rt_sigqueueinfo': (129, 138), 'rt_tgsigqueueinfo': (297, 240),
    'pidfd_send_signal': (424, 424), 'pidfd_open': (434, 434), 'mq_open': (240, 180), 'mq_unlink': (241, 181),
    'shmat': (30, 196), 'shmctl': (31, 195), 'semop': (65, 193), 'semctl': (66, 191), 'semtimedop': (220, 192),
    'msgsnd': (69, 189), 'msgrcv': (70, 188), 'msgctl': (71, 187),
    'connect': (42, 203), 'bind': (49, 200), 'listen': (50, 201), 'inotify_init': (253, None),
    'inotify_init1': (294, 26), 'setpriority': (141, 140), 'ioprio_set': (251, 30), 'sched_setscheduler': (144, 119),
    'chown': (92, None), 'fchown': (93, 55), 'lchown': (94, None), 'fchownat': (260, 54),
    'setxattr': (188, 5), 'lsetxattr': (189, 6), 'fsetxattr': (190, 7), 'removexattr': (197, 14),
    'lremovexattr': (198, 15), 'fremovexattr': (199, 16), 'setxattrat': (463, 463), 'removexattrat': (466, 466),
    'file_setattr': (469, 469),
}  # fmt: skip
"""Refused too where there are no namespaces: other processes, what they share (also by a number that can be guessed),
and attributes and changes of all files, are within reach then."""

_UNSUPPORTED = {
    'getxattr': (191, 8), 'lgetxattr': (192, 9), 'fgetxattr': (193, 10), 'listxattr': (194, 11),
    'llistxattr': (195, 12), 'flistxattr': (196, 13), 'getxattrat': (464, 464), 'listxattrat': (465, 465),
}  # fmt: skip
"""Without namespaces no file system seems to have these: copying files asks for them, Landlock does not cover them."""

_OWN_PROCESS = {
    'tgkill': (234, 131), 'prlimit64': (302, 261), 'sched_setparam': (142, 118), 'sched_setaffinity': (203, 122),
    'sched_setattr': (314, 274),
}  # fmt: skip
"""Calls whose first argument names a process: without namespaces it must be the own one."""

_HARMLESS_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)
"""Calls of `ioctl` that remain without namespaces: is it a terminal and how large, bytes to read, blocking, closing at
`exec`. Others change attributes of files, or choose a process that gets signals."""

_IGNORED = {
    'chmod': (90, None), 'fchmod': (91, 52), 'fchmodat': (268, 53), 'fchmodat2': (452, 452), 'utime': (132, None),
    'utimes': (235, None), 'futimesat': (261, None), 'utimensat': (280, 88),
}  # fmt: skip
"""Without namespaces these seem to succeed and do nothing: copying files uses them, Landlock does not cover them."""

_MODES = {
    'chmod': ((90, None), 1), 'fchmod': ((91, 52), 1), 'fchmodat': ((268, 53), 2), 'fchmodat2': ((452, 452), 2),
    'mknod': ((133, None), 1), 'mknodat': ((259, 33), 2), 'creat': ((85, None), 1),
}  # fmt: skip
"""Calls with an argument (its index) that could make a file setuid."""

_OPENS = {'open': ((2, None), 1), 'openat': ((257, 56), 2)}
"""Calls with flags (their index); the next argument is the mode of a file that they create."""

_HIDDEN_FLAGS = {'clone3': (435, 435), 'openat2': (437, 437)}
"""Calls that hide their flags in memory; callers fall back to the older ones."""

_READING_REQUESTS = (0x8910, 0x8912, 0x8913, 0x8915, 0x8919, 0x891B, 0x891D, 0x8921, 0x8927, 0x8933)
"""Names, addresses, flags and sizes of interfaces."""

Instruction = tuple[int, int, int, int]


def seccomp_filter(*, alone_with_pid: int | None = None, forks: bool = False) -> bytes:
    """The filter for this machine. `alone_with_pid`: refuse other processes and sockets, too; the caller's own id.
    `forks`: let a listener decide about `clone` with the namespaces of a fork.

    Raises `NotImplementedError` on other machines.
    """
    if os.uname().machine not in MACHINES:
        msg = f'there is no seccomp filter for {os.uname().machine}'
        raise NotImplementedError(msg)
    architecture, column = MACHINES[os.uname().machine]
    program: list[Instruction] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_GREATER, 0, 1, NEWEST),  # and the x32 calls of x86_64, whose numbers are large
        _refuse(errno.ENOSYS),
    ]
    if forks:
        notify = [_argument(0), (_EQUAL, 0, 1, FORK_FLAGS), (_RETURN, 0, 0, _NOTIFY)]
        program += _rule(CLONE[os.uname().machine], notify)
    alone = alone_with_pid is not None
    for calls, error in (
        (DENIED, errno.EPERM),
        (_NO_PROCESSES if alone else {}, errno.EPERM),
        (_UNSUPPORTED if alone else {}, errno.ENOTSUP),
        (_IGNORED if alone else {}, 0),
        (_HIDDEN_FLAGS, errno.ENOSYS),
    ):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                program += [(_EQUAL, 0, 1, number), _refuse(error)]
    for rule in _argument_rules(column, alone_with_pid):
        program += rule
    program.append((_RETURN, 0, 0, _ALLOW))
    return b''.join(struct.pack('=HBBI', *instruction) for instruction in program)


def _argument_rules(column: int, alone_with_pid: int | None) -> list[list[Instruction]]:
    shared = [(_AND, 0, 0, _SHARED_ANONYMOUS), *_refuse_values(_SHARED_ANONYMOUS)]
    rules = [_rule((9, 222)[column], [_argument(3), *_refuse_bits(_HUGE_PAGES), *shared])]
    rules += _full_rules(column) if alone_with_pid is None else _alone_rules(column, alone_with_pid)
    for numbers, index in _MODES.values():
        if (number := numbers[column]) is not None:
            rules.append(_rule(number, [_argument(index), *_refuse_bits(_SET_ID)]))
    for numbers, index in _OPENS.values():
        if (number := numbers[column]) is not None:
            mode = [_argument(index + 1), *_refuse_bits(_SET_ID)]
            rules.append(_rule(number, [_argument(index), (_ANY_BIT, 0, len(mode), _CREATE), *mode]))
    return rules


def _full_rules(column: int) -> list[list[Instruction]]:
    """The rules of a guest in namespaces."""
    kinds = [_argument(1), (_AND, 0, 0, 0xF), *_require_values(1, 2, 5)]  # no raw sockets
    return [
        _rule((16, 29)[column], [_argument(1), *_refuse_values(0x5412, 0x541C), *_refuse_interface_changes()]),
        _rule((41, 198)[column], [_argument(0), *_require_values(1, 2, 10), *kinds]),
        _rule((54, 208)[column], _refuse_packet_filters()),
        _rule((55, 209)[column], _refuse_packet_filters()),
        _rule((56, 220)[column], [_argument(0), *_refuse_bits(_NAMESPACES)]),
        _rule((72, 25)[column], [_argument(1), *_refuse_values(_SET_LEASE, _SET_DELEGATION)]),  # they block the host
    ]


def _alone_rules(column: int, pid: int) -> list[list[Instruction]]:
    """The rules of a guest without namespaces: its own threads, and pairs of sockets that know no other address."""
    threads = [*_refuse_bits(_NAMESPACES), (_ANY_BIT, 1, 0, _CLONE_THREAD), _refuse(errno.EPERM)]
    pairs = [_argument(1), (_AND, 0, 0, 0xF), *_require_values(_STREAM)]  # others send to any address
    controls = _refuse_values(_SET_OWNER, _SET_OWNER_EX, _SET_LEASE, _SET_DELEGATION)  # the first two send signals
    return [
        _rule((16, 29)[column], [_argument(1), *_require_values(*_HARMLESS_REQUESTS)]),
        _rule((53, 199)[column], [_argument(0), *_require_values(_UNIX), *pairs]),
        _rule((56, 220)[column], [_argument(0), *threads]),
        _rule((72, 25)[column], [_argument(1), *controls]),
        _rule((157, 167)[column], [_argument(0), *_refuse_values(_DEATH_SIGNAL, _CORE_SCHEDULING)]),
        *(_rule(numbers[column], [_argument(0), *_require_values(0, pid)]) for numbers in _OWN_PROCESS.values()),
    ]


def _refuse_interface_changes() -> list[Instruction]:
    """Calls of `ioctl` (its request is loaded) about sockets and networks, except those that only read. The process
    that is forked has capabilities over its new network until the broker has checked it."""
    allowed = [(_EQUAL, len(_READING_REQUESTS) - index, 0, request) for index, request in enumerate(_READING_REQUESTS)]
    body = [(_GREATER, len(allowed) + 1, 0, 0x8BFF), *allowed, _refuse(errno.EPERM)]
    return [(_GREATER, 0, len(body), 0x8907), *body]


def _refuse_packet_filters() -> list[Instruction]:
    """Options of sockets that are tables of packet filters: those of IPv4 above 63, and two of IPv6."""
    of_ipv6 = [_argument(2), *_refuse_values(64, 65)]
    of_ipv4 = [_argument(2), (_GREATER, 0, 1, 63), _refuse(errno.EPERM)]
    return [_argument(1), (_EQUAL, 0, len(of_ipv4), 0), *of_ipv4, _argument(1), (_EQUAL, 0, len(of_ipv6), 41), *of_ipv6]


def _rule(number: int, body: list[Instruction]) -> list[Instruction]:
    """Instructions for one system call; the number is loaded again at their end."""
    body = [*body, (_LOAD, 0, 0, 0)]
    return [(_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * index)  # the lower half: both machines are little-endian


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)


def _refuse_bits(bits: int) -> list[Instruction]:
    return [(_ANY_BIT, 0, 1, bits), _refuse(errno.EPERM)]


def _refuse_values(*values: int) -> list[Instruction]:
    return [instruction for value in values for instruction in ((_EQUAL, 0, 1, value), _refuse(errno.EPERM))]


def _require_values(*values: int) -> list[Instruction]:
    """Refuse the call unless the loaded argument is one of the values."""
    count = len(values)
    return [*((_EQUAL, count - index, 0, value) for index, value in enumerate(values)), _refuse(errno.EPERM)]
