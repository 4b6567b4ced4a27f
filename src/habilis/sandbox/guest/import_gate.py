"""The list of imports of `CodeRules`, at run time: however the code got a name, and however it was compiled.

Code of the user is all code whose file is not one of the library: cells, text given to `exec`, files of the workspace.
What the library imports for itself passes; what it imports in the name of its caller (`pickle`, `runpy`) does not. A
module that user code has imported hides its internals from user code, and the modules that it has imported itself.

Like all of `code_rules.py`, this is no security boundary: code that reaches the interpreter by other means (`gc`,
`ctypes`, a patched kernel) gets every module.
"""

import builtins
import importlib
import sys
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any, cast

from habilis.sandbox.guest.code_rules import CodeRules, CodeRulesError, refused_import

_ON_BEHALF = frozenset('cloudpickle code importlib pickle pkgutil pydoc runpy timeit zipimport'.split())
"""Modules whose functions import by a name that their caller gave."""

_BY_C_CODE = frozenset({'_strptime', '_pylong', '_pydatetime', '_pydecimal', 'copyreg', 'locale', 'warnings'})
"""What functions written in C import for themselves. They have no frame, so it looks like an import of the cell."""

_INTERNALS = frozenset({'__spec__', '__loader__', '__dict__', '__builtins__'})

RulesGetter = Callable[[], CodeRules | None]
IsUserFrame = Callable[[FrameType], bool]


class ImportGate:
    """Refuses imports outside the list at run time."""

    def __init__(self) -> None:
        self._restore: list[Callable[[], None]] = []

    def install(self, rules_getter: RulesGetter, is_user_frame: IsUserFrame) -> None:
        """Wrap the import functions. `rules_getter` is asked at each import, `is_user_frame` only under a list."""
        self.uninstall()
        rule = _Rule(rules_getter, is_user_frame)
        for module in (builtins, importlib):
            self._replace(module, '__import__', _gated_import(module.__import__, rule))
        self._replace(importlib, 'import_module', _gated_import_module(importlib.import_module, rule))

    def uninstall(self) -> None:
        """Restore the original functions; does nothing if not installed."""
        while self._restore:
            self._restore.pop()()

    def _replace(self, module: ModuleType, name: str, wrapper: Callable[..., ModuleType]) -> None:
        original = getattr(module, name)
        self._restore.append(lambda: setattr(module, name, original))
        setattr(module, name, wrapper)


def refuse_forged_code(
    rules_getter: RulesGetter, is_user_frame: IsUserFrame, is_library: Callable[[str], bool]
) -> None:
    """Refuse code of the user that claims to be of the library, from now on. An audit hook cannot be removed."""
    rule = _Rule(rules_getter, is_user_frame)

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event not in _CODE_EVENTS or rule.rules() is None:
            return
        filename = args[1] if len(args) > 1 else None
        claims = filename is None or is_library(filename if isinstance(filename, str) else str(filename))
        if claims and (caller := rule.caller(2)) is not None:
            msg = f"{event} is refused: it makes code that the code rules' list of imports cannot tell from the library"
            raise CodeRulesError(msg, line=caller.f_lineno)

    sys.addaudithook(audit)


_CODE_EVENTS = frozenset({'compile', 'code.__new__', 'marshal.loads'})


class _Rule:
    """The list of the moment, and to whom it applies."""

    def __init__(self, rules_getter: RulesGetter, is_user_frame: IsUserFrame) -> None:
        self._rules_getter = rules_getter
        self._is_user_frame = is_user_frame

    def rules(self) -> CodeRules | None:
        """The rules, if they have a list."""
        rules = self._rules_getter()
        return None if rules is None or rules.permits_all() else rules

    def caller(self, depth: int) -> FrameType | None:
        """The frame of the user that asks for a module, at this depth or behind functions that import on its behalf."""
        frame: FrameType | None = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and _imports_on_behalf(frame):
            frame = frame.f_back
        return frame if frame is not None and self._is_user_frame(frame) else None

    def guard(self, module: ModuleType) -> None:
        """Hide the internals of a module from the user."""
        if type(module) is not ModuleType:
            return
        loader: object = getattr(module, '__loader__', None)
        if getattr(loader, '__name__', '') == 'BuiltinImporter':  # written in C: it holds no other modules
            module.__spec__ = module.__loader__ = None
        else:
            module.__class__ = _guarded_class(self)

    def read(self, rules: CodeRules, owner: str, name: str, value: object) -> object:
        """What the user gets as an attribute of a module."""
        caller = self.caller(3)
        if caller is None:
            return value
        if name == '__dict__' and isinstance(value, dict):
            entries = cast('dict[str, object]', value).items()
            return {key: part for key, part in entries if key not in _INTERNALS and not isinstance(part, ModuleType)}
        if not isinstance(value, ModuleType):
            msg = f"{owner}.{name} is refused: it leads to modules that are not on the code rules' list"
            raise CodeRulesError(msg, line=caller.f_lineno)
        whole = f'{owner}.{name}'
        if sys.modules.get(whole) is not value and not _is_listed(rules, whole, value):
            raise refused_import(rules, value.__name__, caller.f_lineno)
        self.guard(value)
        return value


def _imports_on_behalf(frame: FrameType) -> bool:
    name: object = frame.f_globals.get('__name__')
    return (
        isinstance(name, str)
        and name.partition('.')[0].lstrip('_') in _ON_BEHALF
        and frame.f_code.co_name != '<module>'  # what the module itself needs
    )


_classes: dict[int, type[ModuleType]] = {}
_get = ModuleType.__getattribute__


def _guarded_class(rule: _Rule) -> type[ModuleType]:
    """The class of modules that the user has imported, made once."""
    if id(rule) in _classes:
        return _classes[id(rule)]

    class Guarded(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            value = _get(self, name)
            if (isinstance(value, ModuleType) or name in _INTERNALS) and (rules := rule.rules()) is not None:
                return rule.read(rules, _get(self, '__name__'), name, value)
            return value

    Guarded.__name__ = Guarded.__qualname__ = 'module'
    _classes[id(rule)] = Guarded
    return Guarded


def _gated_import(original: Callable[..., ModuleType], rule: _Rule) -> Callable[..., ModuleType]:
    def gated(
        name: str,
        globals: object = None,
        locals: object = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        rules = rule.rules()
        if rules is None or level > 0 or (caller := rule.caller(2)) is None:
            return original(name, globals, locals, fromlist, level)
        if name not in _BY_C_CODE:
            _require_listed(rules, name, fromlist or (), caller.f_lineno)
        module = original(name, globals, locals, fromlist, level)
        _require_members_listed(rules, name, module, fromlist or (), caller.f_lineno)
        rule.guard(module)
        return module

    return gated


def _gated_import_module(original: Callable[..., ModuleType], rule: _Rule) -> Callable[..., ModuleType]:
    def gated(name: str, package: str | None = None) -> ModuleType:
        rules = rule.rules()
        if rules is None or name.startswith('.') or (caller := rule.caller(2)) is None:
            return original(name, package)
        if not rules.permits(name):
            raise refused_import(rules, name, caller.f_lineno)
        module = original(name, package)
        rule.guard(module)
        return module

    return gated


def _require_listed(rules: CodeRules, name: str, members: Sequence[str], line: int) -> None:
    by_member = bool(members) and all(member != '*' and rules.permits(f'{name}.{member}') for member in members)
    if not by_member and not rules.permits(name):
        raise refused_import(rules, name, line)


def _require_members_listed(rules: CodeRules, name: str, module: ModuleType, members: Sequence[str], line: int) -> None:
    """`from x import y` imports a module too when y is one: x.y, or a module that x itself imported."""
    for member in members:
        value: object = module.__dict__.get(str(member))
        whole = f'{name}.{member}'
        if isinstance(value, ModuleType) and not _is_listed(rules, whole, value):
            raise refused_import(rules, whole, line)


def _is_listed(rules: CodeRules, whole: str, module: ModuleType) -> bool:
    """Whether a module that is an attribute of another is on the list. `json.codecs` is codecs, so not in 'json.*'."""
    if rules.permits(module.__name__) or whole in (rules.imports or ()):
        return True
    return sys.modules.get(whole) is module and rules.permits(whole)
