"""What a user may ask the guest kernel to refuse: imports outside a list, dangerous calls, hidden strings.

Code rules are for tidiness and for early, clear errors. They are **not** the security boundary: that is the sandbox the
kernel runs in, and nothing may rely on these checks for safety. Python offers endless ways round a static check; the
aim here is that a model's usual mistakes and tricks get a message that says what to do instead.

`check` reads a cell before it runs. `import_gate.py` is the run-time half of the import list, for names that only exist
then. Files are left to the sandbox, so `open` and `os.remove` are never refused.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from typing import TypeGuard

from habilis.sandbox.guest.code_analysis import (
    DANGEROUS_BUILTINS,
    ESCAPES,
    IMPORTERS,
    LEADS_TO_MODULES,
    LOOKUPS,
    CellWalk,
    folded,
    is_reversal,
    member_of,
    spelled_with_chr,
    why_dangerous,
    why_decoder,
)

Rule = Literal['calls', 'strings']
_Placed = ast.expr | ast.alias | ast.pattern

_REFLECTION = frozenset({'getattr', 'setattr', 'delattr'})
_TAKES_A_NAME = _REFLECTION | IMPORTERS | {'eval', 'exec', 'compile'}
_ATTRIBUTE_FETCHERS = frozenset({'operator.attrgetter', 'operator.methodcaller'})
_STAR_IMPORTS = frozenset({'os', 'builtins'})
_FORMAT_FIELD = re.compile(r'[.\[](\w+)')
_PATTERN = re.compile(r'\*|[^\s.*]+(\.[^\s.*]+)*(\.\*)?')
_KEYS = ('imports', 'calls', 'strings', 'allow')


@dataclass(frozen=True, kw_only=True)
class CodeRules:
    """What to refuse. The default refuses nothing."""

    imports: tuple[str, ...] | None = None
    """Modules that may be imported; None is every module. 'numpy' is exactly numpy, 'numpy.*' is numpy and everything
    below it, '*' is everything."""
    calls: bool = False
    """Refuse calls that run text as code, start processes or reach into the interpreter."""
    strings: bool = False
    """Refuse the usual ways to hide code in strings: decoders, chr() spelling, concatenated names."""
    allow: tuple[str, ...] = ()
    """Exceptions to `calls` and `strings` by dotted name, such as 'eval', 'os.system' or 'base64.b64decode'. A name
    stands for everything below it too, and for the import of the module it is in."""

    def __post_init__(self) -> None:
        for field, patterns in (('imports', self.imports or ()), ('allow', self.allow)):
            if not _is_sequence(patterns):
                msg = f"{field} must be a tuple of names, such as ('math',), not {patterns!r:.100}"
                raise TypeError(msg)
            for pattern in patterns:
                if not _is_pattern(pattern):
                    msg = f"{field}: {pattern!r} is not a dotted name; write 'numpy', 'numpy.*' or '*'"
                    raise ValueError(msg)

    def permits(self, module: str) -> bool:
        """Whether `imports` lets a module be imported."""
        return self.imports is None or any(
            pattern in {'*', module} or (pattern.endswith('.*') and f'{module}.'.startswith(pattern[:-1]))
            for pattern in self.imports
        )

    def permits_all(self) -> bool:
        """Whether every module may be imported."""
        return self.imports is None or '*' in self.imports

    def authorises(self, name: str) -> bool:
        """Whether `allow` makes an exception for a dotted name."""
        stems = [pattern.removesuffix('.*') for pattern in self.allow]
        return any(stem == '*' or f'{name}.'.startswith(f'{stem}.') or stem.startswith(f'{name}.') for stem in stems)

    def to_json(self) -> dict[str, object]:
        """The rules as a plain dict, for `from_json`."""
        imports = None if self.imports is None else list(self.imports)
        return {'imports': imports, 'calls': self.calls, 'strings': self.strings, 'allow': list(self.allow)}

    @classmethod
    def from_json(cls, data: object) -> 'CodeRules':
        """Rules from a plain dict; a ValueError names the key that is unknown or of the wrong type."""
        given = _entries(data)
        for key in given:
            if key not in _KEYS:
                msg = f'{key!r} is not a key of code rules; the keys are {", ".join(_KEYS)}'
                raise ValueError(msg)
        imports = given.get('imports')
        return cls(
            imports=None if imports is None else _names('imports', imports),
            calls=_flag('calls', given.get('calls', False)),
            strings=_flag('strings', given.get('strings', False)),
            allow=_names('allow', given.get('allow', ())),
        )


class CodeRulesError(Exception):
    """A cell does what the rules refuse. The message says what, why, and how to allow it."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class RefusedImport(CodeRulesError, ImportError):
    """An import outside the list; also an ImportError, so that code with a fallback takes it."""

    def __init__(self, message: str, *, line: int | None = None, name: str | None = None) -> None:
        super().__init__(message, line=line)
        self.name = name


def check(tree: ast.Module, rules: CodeRules) -> None:
    """Raise a CodeRulesError for the first thing in a cell that the rules refuse."""
    if rules.imports is None and not rules.calls and not rules.strings:
        return
    walk = _CheckedWalk(tree, rules)
    walk.walk()
    if walk.refusals:
        _, error = min(walk.refusals, key=itemgetter(0))
        raise error


def refused_import(rules: CodeRules, name: str, line: int) -> RefusedImport:
    """The error for a module that is not on the list."""
    listed = ', '.join(rules.imports or ()) or 'which is empty'
    msg = (
        f"import of {name} is refused: it is not on the code rules' list ({listed}). "
        f"To allow it, add {name!r} to the code rules' `imports`."
    )
    return RefusedImport(msg, line=line, name=name)


def _entries(data: object) -> dict[object, object]:
    if not isinstance(data, dict):
        msg = f'code rules are a dict, not {data!r}'
        raise ValueError(msg)
    return cast('dict[object, object]', data)


def _is_pattern(value: object) -> bool:
    return isinstance(value, str) and bool(_PATTERN.fullmatch(value))


def _is_sequence(value: object) -> 'TypeGuard[Sequence[object]]':
    return isinstance(value, list | tuple)


def _names(key: str, value: object) -> tuple[str, ...]:
    if _is_sequence(value):
        names = tuple(item for item in value if isinstance(item, str))
        if len(names) == len(value):
            return names
    msg = f'{key!r} must be a list of strings, not {value!r}'
    raise ValueError(msg)


def _flag(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    msg = f'{key!r} must be true or false, not {value!r}'
    raise ValueError(msg)


class _CheckedWalk(CellWalk):
    """Collects what the rules refuse in a cell, with positions."""

    def __init__(self, tree: ast.Module, rules: CodeRules) -> None:
        super().__init__(tree)
        self.refusals: list[tuple[tuple[int, int], CodeRulesError]] = []
        self._rules = rules

    def inspect(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._import(alias)
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                for alias in aliases:
                    self._import_from(module, alias)
            case ast.Name(ctx=ast.Load()):
                name = self.dotted(node)
                self._judge(node, name if name in DANGEROUS_BUILTINS else None)
            case ast.Attribute(attr=attr, ctx=context):
                self._escape(node, attr)
                self._judge(node, self.dotted(node) if isinstance(context, ast.Load) else None)
            case ast.Subscript(value=owner, slice=key):
                self._loaded_module(node, owner, folded(key))
                self._escape(node, folded(key))
                self._judge(node, self.dotted(node))
                self._text(node)
            case ast.Call():
                self._call(node)
                self._judge(node, self.dotted(node))
                self._text(node)
            case ast.BinOp() | ast.JoinedStr():
                self._text(node)
            case ast.MatchClass(kwd_attrs=attrs):
                for attr in attrs:
                    self._escape(node, attr)
            case _:
                pass

    def _import(self, alias: ast.alias) -> None:
        root = alias.name.partition('.')[0]
        self._require(alias, alias.name)
        self._judge(alias, alias.name)
        self.bind(alias, alias.asname or root, alias.name if alias.asname else root)

    def _import_from(self, module: str, alias: ast.alias) -> None:
        if alias.name == '*':
            self._require(alias, module)
            self._judge(alias, module)
            if module in _STAR_IMPORTS:
                self._refuse(alias, 'calls', f'{module}.*', 'it imports dangerous names implicitly')
            return
        name = member_of(module, alias.name)
        self._require(alias, module, f'{module}.{alias.name}')
        self._escape(alias, alias.name)
        self._judge(alias, name)
        self.bind(alias, alias.asname or alias.name, name)

    def _call(self, node: ast.Call) -> None:
        name, args = self.dotted(node.func), node.args
        first = folded(args[0]) if args else None
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ''
        if name in IMPORTERS and first and not first.startswith('.'):
            self._require(node, first)
        if name in _REFLECTION:
            self._reflect(node, name, folded(args[1]) if len(args) > 1 else None)
        if name in _ATTRIBUTE_FETCHERS:
            for attr in (first or '').split('.'):
                self._escape(node, attr)
        if method in LOOKUPS and isinstance(node.func, ast.Attribute):
            self._loaded_module(node, node.func.value, first)
            self._escape(node, first)
        if method in {'format', 'format_map'} and isinstance(node.func, ast.Attribute):
            for attr in _FORMAT_FIELD.findall(folded(node.func.value) or ''):
                self._escape(node, attr)
        if name in _TAKES_A_NAME and any(map(is_reversal, args)):
            self._refuse(node, 'strings', name, 'its text is written backwards')

    def _loaded_module(self, node: ast.expr, owner: ast.expr, name: str | None) -> None:
        """`sys.modules[name]` is an import by another means."""
        if self.dotted(owner) == 'sys.modules':
            self._require(node, name or 'a module by a computed name')

    def _reflect(self, node: ast.Call, function: str, attr: str | None) -> None:
        if attr is None:
            self._refuse(node, 'calls', function, 'the attribute it reaches is only known at run time')
        elif attr in DANGEROUS_BUILTINS:
            self._judge(node, attr)
        else:
            self._escape(node, attr)

    def _text(self, node: ast.expr) -> None:
        if spelled_with_chr(node):
            self._refuse(node, 'strings', 'chr', 'the text is spelled with character codes')
        text = folded(node)
        if text is None or not (text in ESCAPES or why_dangerous(text) or why_decoder(text)):
            return
        in_plain_sight = any(isinstance(part, ast.Constant) and part.value == text for part in ast.walk(node))
        if not in_plain_sight:
            self._refuse(node, 'strings', text, 'the name is concatenated from parts')

    def _judge(self, node: _Placed, name: str | None) -> None:
        if name is None:
            return
        if why := why_dangerous(name):
            self._refuse(node, 'calls', name, why)
        if why := why_decoder(name):
            self._refuse(node, 'strings', name, why)

    def _escape(self, node: _Placed, attr: str | None) -> None:
        if attr in LEADS_TO_MODULES and not self._rules.permits_all() and not self._rules.authorises(attr):
            how = f"To allow it, add {attr!r} to the code rules' `allow`."
            msg = f"{attr} is refused: it leads to modules that are not on the code rules' list. {how}"
            self._note(node, CodeRulesError(msg, line=node.lineno))
        if attr in ESCAPES:
            self._refuse(node, 'calls', attr, "it leads from a value into the interpreter's internals")

    def _require(self, node: _Placed, *modules: str) -> None:
        if not any(map(self._rules.permits, modules)):
            self._note(node, refused_import(self._rules, modules[0], node.lineno))

    def _refuse(self, node: _Placed, rule: Rule, name: str, why: str) -> None:
        switched_on = self._rules.calls if rule == 'calls' else self._rules.strings
        if switched_on and not self._rules.authorises(name):
            how = f"To allow it, add {name!r} to the code rules' `allow`, or set its `{rule}` to False."
            self._note(node, CodeRulesError(f'{name} is refused: {why}. {how}', line=node.lineno))

    def _note(self, node: _Placed, error: CodeRulesError) -> None:
        self.refusals.append(((node.lineno, node.col_offset), error))
