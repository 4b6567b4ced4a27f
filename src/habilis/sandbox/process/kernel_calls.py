"""System calls that Python does not offer, by ctypes. Runs on both sides of the isolation."""

import _socket
import ctypes
import errno
import os
import signal
import struct
from collections.abc import Sequence

libc = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_USERS, NEW_PIDS, NEW_NETWORK = 0x0002_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
NEW_IPC, NEW_HOST_NAME, NEW_GROUPS = 0x0800_0000, 0x0400_0000, 0x0200_0000
FORK_FLAGS = NEW_USERS | NEW_MOUNTS | NEW_PIDS | NEW_NETWORK | NEW_IPC | NEW_HOST_NAME | NEW_GROUPS | signal.SIGCHLD
"""The namespaces of a forked guest. The filter lets the broker decide about a `clone` with exactly these flags."""

CLONE = {'x86_64': 56, 'aarch64': 220}

_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
_SECCOMP = {'x86_64': 317, 'aarch64': 277}
_HERE, _CLOEXEC, _EMPTY_PATH, _FROM_EMPTY_PATH = -100, os.O_CLOEXEC, 0x1000, 0x4
_SET_STRING, _CREATE_FILE_SYSTEM = 1, 6
READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXECUTION, MAPPED = 1, 2, 4, 8, 0x0010_0000
_NOTIFY_RECEIVE, _NOTIFY_SEND, _NOTIFY_IS_VALID, _CONTINUE = 0xC050_2100, 0xC018_2101, 0x4008_2102, 1
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_SET_FLAGS, _UP = 0x8914, 1
_MAX_DESCRIPTORS, _MAX_PACKET = 64, 1 << 20


def check(result: int) -> int:
    """Raise `OSError` if a call has failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def unshare(namespaces: int) -> None:
    """Move this process to new namespaces."""
    check(libc.unshare(namespaces))


def join(namespace: int, kind: int) -> None:
    """Move this process to a namespace, by a descriptor."""
    check(libc.setns(namespace, kind))


def make_mounts_private() -> None:
    """Let no mount of this namespace spread to another."""
    check(libc.mount(None, b'/', None, ctypes.c_ulong(0x4000 | (1 << 18)), None))


def copy_mount(path: str) -> int:
    """A detached copy of a mount, as a descriptor."""
    return check(libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), 1 | _CLOEXEC))


def new_mount(kind: bytes, attributes: int, **options: str) -> int:
    """A detached mount of a new file system."""
    made = check(libc.syscall(_FSOPEN, kind, 1))
    try:
        for name, value in options.items():
            check(libc.syscall(_FSCONFIG, made, _SET_STRING, name.encode(), value.encode(), 0))
        check(libc.syscall(_FSCONFIG, made, _CREATE_FILE_SYSTEM, None, None, 0))
        return check(libc.syscall(_FSMOUNT, made, 1, attributes))
    finally:
        os.close(made)


def set_mount_attributes(mount: int, attributes: int, namespace: int = 0) -> None:
    """Set attributes of a mount; `MAPPED` takes a user namespace."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, namespace)
    check(libc.syscall(_MOUNT_SETATTR, mount, b'', _EMPTY_PATH, wanted, ctypes.c_size_t(32)))


def attach_mount(mount: int, path: str) -> None:
    """Attach a detached mount."""
    check(libc.syscall(_MOVE_MOUNT, mount, b'', _HERE, os.fsencode(path), _FROM_EMPTY_PATH))


def enable_loopback() -> None:
    """Switch on the loopback interface of a new network, which is off at first."""
    opened = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    try:
        check(libc.ioctl(opened.fileno(), ctypes.c_ulong(_SET_FLAGS), struct.pack('16sH14x', b'lo', _UP)))
    finally:
        opened.close()


# Processes ------------------------------------------------------------------------------------------------------------


def fork_into_namespaces() -> int:
    """Like `os.fork`, into new namespaces. glibc does not know of it, so the new process must fork before it is used
    for more than a few calls; and it may have no other threads."""
    python, call = ctypes.pythonapi, ctypes.PyDLL(None, use_errno=True).syscall
    number, flags = ctypes.c_long(CLONE[os.uname().machine]), ctypes.c_long(FORK_FLAGS)
    python.PyOS_BeforeFork()
    pid = call(number, flags, None, None, None, None)
    (python.PyOS_AfterFork_Child if pid == 0 else python.PyOS_AfterFork_Parent)()
    return check(pid)


def seize(pid: int) -> None:
    """Become the tracer of a process and interrupt it."""
    check(libc.ptrace(_SEIZE, pid, None, None))
    check(libc.ptrace(_INTERRUPT, pid, None, None))


def release(pid: int) -> None:
    """Let a process run again after `seize`."""
    check(libc.ptrace(_DETACH, pid, None, None))


# Seccomp --------------------------------------------------------------------------------------------------------------


def install_filter(program: bytes, *, listen: bool) -> int | None:
    """Install a filter. With `listen`: the descriptor on which another process decides about some calls."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack('HxxxxxxP', len(program) // 8, ctypes.addressof(buffer))
    done = check(libc.syscall(_SECCOMP[os.uname().machine], 1, ctypes.c_ulong(8 if listen else 0), header))
    return done if listen else None


def receive_notice(listener: int) -> tuple[int, int, int, int]:
    """A call that waits for a decision: its id, the thread, the number of the call, and its first argument."""
    notice = ctypes.create_string_buffer(80)
    check(libc.ioctl(listener, ctypes.c_ulong(_NOTIFY_RECEIVE), notice))
    number, pid, _, call, _, _, first = struct.unpack_from('=QIIiIQQ', notice)
    return number, pid, call, first


def is_waiting(listener: int, number: int) -> bool:
    """Whether the call still waits: its process has not ended, so that what was opened by its id belongs to it."""
    return libc.ioctl(listener, ctypes.c_ulong(_NOTIFY_IS_VALID), struct.pack('=Q', number)) == 0


def decide(listener: int, number: int, *, allowed: bool) -> None:
    """Let the call continue, or fail."""
    error, flags = (0, _CONTINUE) if allowed else (-errno.EPERM, 0)
    check(libc.ioctl(listener, ctypes.c_ulong(_NOTIFY_SEND), struct.pack('=QqiI', number, 0, error, flags)))


# Descriptors through sockets ------------------------------------------------------------------------------------------


def send(socket: int, data: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send a packet with descriptors through a socket between processes."""
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f'{len(descriptors)}i', *descriptors))]
    opened = _open_socket(socket)
    try:
        opened.sendmsg([data], rights if descriptors else [])
    finally:
        opened.detach()


def receive(socket: int) -> tuple[bytes, list[int]]:
    """A packet and its descriptors. Empty at the end."""
    opened = _open_socket(socket)
    try:
        data, ancillary, _, _ = opened.recvmsg(
            _MAX_PACKET, _socket.CMSG_SPACE(4 * _MAX_DESCRIPTORS), _socket.MSG_CMSG_CLOEXEC
        )
    finally:
        opened.detach()
    found: list[int] = []
    for level, kind, content in ancillary:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            found += struct.unpack(f'{len(content) // 4}i', content[: len(content) // 4 * 4])
    return data, found


def _open_socket(descriptor: int) -> _socket.socket:
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, descriptor)
