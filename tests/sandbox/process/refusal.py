"""A command on a machine that refuses namespaces, as containers do: a filter fails the system calls for them.

python -m tests.sandbox.process.refusal COMMAND …
"""

import os
import sys

from habilis.sandbox.process import kernel_calls as calls
from habilis.sandbox.process.seccomp import seccomp_filter

if __name__ == '__main__':
    calls.check(calls.libc.prctl(38, 1, 0, 0, 0))  # no new privileges, without which only root may install a filter
    calls.install_filter(seccomp_filter(), listen=False)
    os.execv(sys.argv[1], sys.argv[1:])
