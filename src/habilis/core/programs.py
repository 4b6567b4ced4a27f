"""Where an object is in the user's program, so that a command line can name it."""

import functools
import os
import sys
import sysconfig
import weakref
from pathlib import Path
from types import ModuleType
from typing import cast

MAIN = '__main__'

_OURS = 'habilis.'
_INSTALLED = tuple({f'{sysconfig.get_path(name)}{os.sep}' for name in ('stdlib', 'platstdlib', 'purelib', 'platlib')})
_KNOWN: 'weakref.WeakKeyDictionary[object, str]' = weakref.WeakKeyDictionary()


def program_of(value: object) -> str:
    """`module:name` of the global variable that has this value, in a module of the user; empty if there is none."""
    if value not in _KNOWN:
        _KNOWN[value] = next(
            (found for module in _user_modules(len(sys.modules)) if (found := _find(module, value))), ''
        )
    return _KNOWN[value]


def importable_name(module: str) -> str:
    """The name under which another process imports a module; of a script, its file. Empty if it cannot."""
    if module != MAIN:
        return module
    main = sys.modules.get(MAIN)
    spec, file = getattr(main, '__spec__', None), getattr(main, '__file__', None)
    if spec is not None:  # started by `python -m`
        return str(spec.name)
    try:
        path = Path(file or '').resolve().relative_to(Path.cwd()).with_suffix('')
    except (OSError, ValueError):  # the script is not in the current folder, which is where commands look
        return ''
    return '.'.join(path.parts) if file and all(part.isidentifier() for part in path.parts) else ''


@functools.lru_cache(maxsize=1)
def _user_modules(_count: int) -> list[ModuleType]:
    """Modules that are not installed packages, the script first. Searched again when more modules are loaded."""
    found = [sys.modules[MAIN]] if MAIN in sys.modules else []
    for name, module in list(sys.modules.items()):
        if name == MAIN or name.startswith(_OURS) or not isinstance(cast('object', module), ModuleType):
            continue
        file = module.__dict__.get('__file__')  # an attribute of a lazy module would import it
        if isinstance(file, str) and not file.startswith(_INSTALLED):
            found.append(module)
    return found


def _find(module: ModuleType, value: object) -> str:
    name = next((name for name, known in list(vars(module).items()) if known is value), '')
    place = importable_name(module.__name__) if name else ''
    return f'{place}:{name}' if place else ''
