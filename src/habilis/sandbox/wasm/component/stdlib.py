"""The standard library in memory: its files exist during the build, and not when the component runs."""

import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import os
import sys
import types
import zlib
from collections.abc import Sequence

EXCLUDED = frozenset(
    {'test', 'idlelib', 'tkinter', 'turtledemo', 'turtle.py', 'ensurepip', 'venv', 'lib2to3', 'site-packages'}
)
ROOT = '/python'


class StdlibInMemory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules in the compressed code objects that were collected during the build."""

    def __init__(self) -> None:
        self._modules: dict[str, tuple[bool, bytes]] = {}

    def collect(self, folder: str = ROOT, prefix: str = '') -> None:
        """Read and compile every module below the folder."""
        for entry in sorted(os.listdir(folder)):
            path = f'{folder}/{entry}'
            if entry in EXCLUDED:
                continue
            if os.path.exists(f'{path}/__init__.py'):
                self.collect(path, f'{prefix}{entry}.')
            elif entry.endswith('.py'):
                is_package = entry == '__init__.py'
                self._add(prefix[:-1] if is_package else prefix + entry[:-3], path, is_package)

    def _add(self, name: str, path: str, is_package: bool) -> None:
        with open(path, 'rb') as file:
            code = compile(file.read(), path, 'exec', dont_inherit=True, optimize=0)
        self._modules[name] = (is_package, zlib.compress(marshal.dumps(code), 9))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module of the standard library."""
        if fullname not in self._modules:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin='stdlib', is_package=self._modules[fullname][0])

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the module's code."""
        exec(marshal.loads(zlib.decompress(self._modules[module.__name__][1])), module.__dict__)

    def get_code(self, fullname: str) -> types.CodeType:
        """The code of a module, for `runpy`."""
        code: types.CodeType = marshal.loads(zlib.decompress(self._modules[fullname][1]))
        return code

    def is_package(self, fullname: str) -> bool:
        """Whether a module is a package, for `runpy`."""
        return self._modules[fullname][0]


def install() -> None:
    """Collect the library and put the finder behind the built-in modules."""
    finder = StdlibInMemory()
    finder.collect()
    sys.meta_path.insert(2, finder)
