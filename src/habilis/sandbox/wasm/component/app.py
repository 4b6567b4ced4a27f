"""The entry point of the component. Runs once during the build; every sandbox starts from the memory it leaves."""

import gc
import importlib
import sys
from typing import Any, cast

import stdlib  # pyright: ignore[reportMissingImports]
import timezones  # pyright: ignore[reportMissingImports]
import wit_world  # pyright: ignore[reportMissingImports]

cast('Any', stdlib).install()

from habilis.core.codec import dump  # noqa: E402
from habilis.sandbox.guest.bridge import PIECE  # noqa: E402
from habilis.sandbox.guest.kernel import Kernel  # noqa: E402 - the standard library must be in memory first

COMMON = """
abc argparse array ast asyncio base64 bisect calendar cmath codecs collections collections.abc colorsys
concurrent.futures contextlib contextvars copy csv dataclasses datetime decimal difflib email.message enum fnmatch
fractions functools getpass glob graphlib gzip hashlib heapq hmac html html.parser http.client importlib.metadata
importlib.resources inspect io ipaddress itertools json keyword linecache locale logging math mimetypes numbers
operator os os.path pathlib pickle platform pprint queue random re reprlib secrets shlex shutil signal statistics
string struct subprocess tempfile textwrap threading time timeit token tokenize traceback types typing unicodedata
unittest urllib.parse urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo encodings.ascii
encodings.idna encodings.latin_1 encodings.utf_8_sig encodings.utf_16 encodings.cp1252 encodings.unicode_escape
encodings.raw_unicode_escape encodings.punycode
"""
for _name in COMMON.split():
    importlib.import_module(_name)

cast('Any', timezones).install()

# These cells run during the build and fill the caches of Python for every sandbox.
WARM_UP = (
    '1 + 1',
    'x = [1, 2.5, "a", None, {"k": (1, 2)}]\nx',
    'import math\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(12), math.pi, sorted({3, 1, 2}))',
    'class A:\n    y: int = 1\nf"{A().y:>5}"',
    'import asyncio\nawait asyncio.sleep(0)',
    '1 / 0',
    'def (',
)


def _silent_host(_message: str) -> str:
    return '[]'


def _warm(kernel: Kernel) -> None:
    """Run the warm-up cells with a host that answers nothing, then reset the kernel."""
    real, kernel.bridge.send = kernel.bridge.send, _silent_host
    for _ in range(4):
        for code in WARM_UP:
            kernel.enter(dump({'op': 'run', 'code': code, 'setup': {}}))
        kernel.enter(dump({'op': 'save'}))
    kernel.bridge.send = real
    kernel.reset()


RESERVE = 1 << 20
HOLES = (8192, 2048, 512, 128, 32, 8)
MAX_FILLERS = 20_000


def _fill_holes() -> list[bytes]:
    """Allocate what fits into the holes that the build has left all over the memory, and leave one free block.

    A sandbox allocates from that block. From the holes it would get every object on a page of its own, which it then
    has to copy.
    """
    block = bytes(RESERVE)
    fillers: list[bytes] = []
    for size in HOLES:
        adjacent = last = 0
        for _ in range(MAX_FILLERS):
            fillers.append(bytes(size))
            adjacent = adjacent + 1 if 0 < id(fillers[-1]) - last < size + 64 else 0
            last = id(fillers[-1])
            if adjacent == 100:  # more than fit into a hole that the size before has left: there are no holes now
                break
    del block
    return fillers


HOST = cast('Any', wit_world).host
KERNEL = Kernel(HOST)
KERNEL.install()
_warm(KERNEL)
sys.path[:] = []
sys.path_importer_cache.clear()
gc.collect()
FILLERS = _fill_holes()
gc.freeze()


class WitWorld(cast('Any', wit_world).WitWorld):
    """The exports of the component."""

    def enter(self, message: str) -> str:
        """Handle one request of the host. A long answer is sent in pieces, before the last one is returned."""
        answer = KERNEL.enter(message)
        sent = 0
        while len(answer) - sent > PIECE:
            HOST('a' + answer[sent : sent + PIECE])
            sent += PIECE
        return answer[sent:]
