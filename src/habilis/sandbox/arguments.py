"""Checks of arguments: a value of a wrong type is a `TypeError` that names the argument and says what it should be."""

import os
from collections.abc import Callable, Iterable, Mapping
from types import UnionType

from habilis.core.limits import Limits
from habilis.core.narrowing import is_mapping, is_several
from habilis.core.previews import shorten
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.contract import Mount

Kind = type | UnionType
MAX_SHOWN = 60
_RULES = CodeRules | None
_PATH: UnionType = str | os.PathLike  # pyright: ignore[reportMissingTypeArgument]


def check(name: str, value: object, kind: Kind, wanted: str) -> None:
    """Raise `TypeError` unless the value is of this kind. `True` and `False` are no numbers."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise wrong(name, value, wanted)


def check_number(name: str, value: object) -> None:
    """Raise `TypeError` unless the value is a number or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise wrong(name, value, 'a number of seconds')


def check_cell(code: object, code_rules: object, seconds: float | None, on_output: object) -> None:
    """Check the arguments of a cell, and the rules that were set for it."""
    check('code', code, str, 'Python code as text')
    check('code_rules', code_rules, _RULES, "CodeRules, such as CodeRules(imports=('math',))")
    check_number('seconds', seconds)
    if on_output is not None and not callable(on_output):
        raise wrong('on_output', on_output, 'a function of stream and text')
    if seconds is not None and not seconds > 0:
        msg = f'seconds must be greater than 0, not {seconds!r}'
        raise ValueError(msg)


def check_settings(settings: Mapping[str, object]) -> None:
    """Check the types of the settings of a sandbox, not yet what is inside."""
    for name, value in settings.items():
        test, wanted = _SETTINGS[name]
        if not test(value):
            raise wrong(name, value, wanted)


def wrong(name: str, value: object, wanted: str) -> TypeError:
    """The error for an argument of a wrong type."""
    return TypeError(f'{name} must be {wanted}, not {shorten(value, MAX_SHOWN)} ({type(value).__name__})')


def _is(kind: Kind) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _are(kind: Kind) -> Callable[[object], bool]:
    """Several of a kind, or None. One that can be read only once is checked later."""

    def test(value: object) -> bool:
        if is_several(value):
            return all(isinstance(item, kind) for item in value)
        return value is None or (isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping))

    return test


def _mapping_to(kind: Kind) -> Callable[[object], bool]:
    def test(value: object) -> bool:
        if not is_mapping(value):
            return value is None
        return all(isinstance(key, str) and isinstance(item, kind) for key, item in value.items())

    return test


_are_texts, _are_paths = _are(str), _are(_PATH)


def _are_mounts(value: object) -> bool:
    test = _mapping_to(_PATH) if is_mapping(value) else _are(Mount)
    return test(value)


_SETTINGS: dict[str, tuple[Callable[[object], bool], str]] = {
    'limits': (_is(Limits | None), 'a Limits, such as Limits(seconds=5)'),
    'tools': (_are(object), 'a list of functions'),
    'variables': (_mapping_to(object), 'a dict of plain data by name'),
    'workspace': (_is(_PATH | bool | None), 'the path of a folder, or True for a temporary one'),
    'read_only': (_is(bool | str), 'True, False, or advice for code'),
    'protect': (_is(bool), 'True or False'),
    'mounts': (_are_mounts, "a dict of folders by their path inside, such as {'/data': 'data'}, or a list of Mount"),
    'env': (_mapping_to(str), "a dict of texts by name, such as {'LANG': 'C'}"),
    'packages': (lambda value: isinstance(value, str) or _are_paths(value), "a list such as ['attrs==25.3']"),
    'network': (lambda value: isinstance(value, bool | str) or _are_texts(value), 'True, False or a list of hosts'),
    'code_rules': (_is(CodeRules | None), "CodeRules, such as CodeRules(imports=('math',))"),
    'input': (lambda value: callable(value) or _are_texts(value), 'a function of the prompt, or a list of lines'),
    'checkpoints': (_is(bool), 'True or False'),
    'allow_weak': (_is(bool), 'True or False'),
    'image': (_is(str), 'the name of an image'),
    'url': (_is(str), 'an address'),
    'key': (_is(str), 'text'),
}
