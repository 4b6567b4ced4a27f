"""A command on a machine that refuses namespaces, as containers do: a filter fails the system calls for them.

python -m tests.sandbox.process.refusal COMMAND …
"""

import os
import platform
import struct
import sys

from habilis.sandbox.process import kernel_calls as calls
from habilis.sandbox.process.seccomp import DENIED, MACHINES

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERROR, _NO_PERMISSION, _NO_SYSTEM_CALL = 0x7FFF0000, 0x00050000, 1, 38
_NAMESPACES, _CLONE3 = 0x7E020080, 435
_REFUSED = ('mount', 'umount2', 'pivot_root', 'open_tree', 'move_mount', 'fsopen', 'fsmount', 'unshare', 'setns')


def _filter() -> bytes:
    machine = platform.machine()
    column = MACHINES[machine][1]
    program = [(_LOAD, 0, 0, 0)]
    for number in (DENIED[name][column] for name in _REFUSED):
        assert number is not None
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | _NO_PERMISSION)]
    program += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | _NO_SYSTEM_CALL)]
    program += [(_EQUAL, 0, 3, calls.CLONE[machine]), (_LOAD, 0, 0, 16)]
    program += [(_ANY_BIT, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _ERROR | _NO_PERMISSION), (_RETURN, 0, 0, _ALLOW)]
    return b''.join(struct.pack('=HBBI', *instruction) for instruction in program)


if __name__ == '__main__':
    calls.check(calls.libc.prctl(38, 1, 0, 0, 0))  # no new privileges, without which only root may install a filter
    calls.install_filter(_filter(), listen=False)
    os.execv(sys.argv[1], sys.argv[1:])
