"""Static analysis for code rules: dangerous names, constant strings, and what names refer to.

This module knows nothing of any rules; `code_rules.py` decides what is refused. Like the rules it serves, it is for
tidiness and early, clear errors and is no security boundary: it sees one cell at a time and follows names and strings
only as far as a reader would.

Nothing here recurses without a bound, because a cell may nest deeper than the interpreter's recursion limit.
"""

import ast
import re
from collections.abc import Callable, Iterable
from functools import partial

_Step = ast.AST | Callable[[], None]

# In these tables 'x.*' is x and everything below it; any other star is the rest of one name.
_CALLS = {
    'it runs text as code': 'eval exec compile runpy.*',
    'it imports a module by a computed name (write an import statement)': (
        '__import__ importlib.import_module importlib.__import__ __loader__ __spec__'
    ),
    'it gives access to the builtins': '__builtins__',
    'it starts or ends processes': (
        'os.system os.popen os.exec* os.spawn* os.posix_spawn* os.fork* os.kill* subprocess.* pty.* posix.* '
        '_posixsubprocess.* asyncio.create_subprocess_*'
    ),
    'it calls native code': 'ctypes.* _ctypes.* cffi.*',
}
_DECODERS = {
    'it creates text or code that is not visible in the source': (
        'base64.*decode* binascii.a2b_* binascii.unhexlify codecs.decode codecs.getdecoder codecs.*_decode '
        'bytes.fromhex bytearray.fromhex zlib.decompress* gzip.decompress bz2.decompress lzma.decompress '
        'marshal.load* pickle.load* pickle.Unpickler _pickle.load* cloudpickle.load* dill.load*'
    ),
}
DANGEROUS_BUILTINS = frozenset({'eval', 'exec', 'compile', '__import__', '__builtins__', '__loader__', '__spec__'})
ESCAPES = frozenset(
    '__subclasses__ __bases__ __base__ __mro__ __globals__ __code__ __closure__ __builtins__ __import__ __self__ '
    '__loader__ __reduce__ __reduce_ex__ __getattribute__ f_globals f_locals f_builtins f_back f_code gi_frame gi_code '
    'tb_frame cr_frame cr_code ag_frame ag_code'.split()
)
LEADS_TO_MODULES = frozenset(
    '__globals__ __builtins__ __loader__ __spec__ __subclasses__ __getattribute__ __closure__ f_globals f_builtins '
    'f_back gi_frame tb_frame cr_frame ag_frame'.split()
)
"""Attributes by which code gets at modules that it has not imported."""

IMPORTERS = frozenset({'__import__', 'importlib.import_module', 'importlib.__import__'})
LOOKUPS = frozenset({'get', 'pop', 'setdefault', '__getitem__'})
_TEXT_METHODS = frozenset({'lower', 'upper', 'casefold', 'swapcase', 'strip', 'lstrip', 'rstrip', 'replace'})

_CHR_PIECES = 4
_DEPTH = 20
_LONGEST = 64


def _compiled(table: dict[str, str]) -> list[tuple[str, re.Pattern[str]]]:
    def expression(pattern: str) -> str:
        stem = pattern.removesuffix('.*')
        below = r'(\..+)?' if stem != pattern else ''
        return re.escape(stem).replace(r'\*', r'\w*') + below

    return [(why, re.compile('|'.join(map(expression, names.split())))) for why, names in table.items()]


_CALL_PATTERNS, _DECODER_PATTERNS = _compiled(_CALLS), _compiled(_DECODERS)


def why_dangerous(name: str) -> str | None:
    """Why a dotted name counts as a dangerous call, or None."""
    return next((why for why, pattern in _CALL_PATTERNS if pattern.fullmatch(name)), None)


def why_decoder(name: str) -> str | None:
    """Why a dotted name counts as a way to hide text, or None."""
    return next((why for why, pattern in _DECODER_PATTERNS if pattern.fullmatch(name)), None)


def folded(node: ast.AST, depth: int = 0) -> str | None:
    """The text that an expression of constants makes; None where it depends on anything else."""
    if depth > _DEPTH:
        return None
    match node:
        case ast.Constant(value=str(text)):
            return _short(text)
        case ast.BinOp(op=ast.Add()):
            parts = _summands(node)
            return _joined('', _pieces(parts, depth)) if len(parts) <= _LONGEST else None
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            values = _pieces(right.elts if isinstance(right, ast.Tuple) else [right], depth)
            return _filled(folded(left, depth + 1), '%', r'%([sc])', values)
        case ast.JoinedStr(values=values):
            return _joined('', _pieces(map(_interpolated, values), depth))
        case ast.Subscript(value=owner, slice=ast.Slice() as part):
            return _sliced(folded(owner, depth + 1), part)
        case ast.Call(func=ast.Name(id='chr'), args=[ast.Constant(value=int(code))]):
            return chr(code) if 0 <= code <= 0x10FFFF else None
        case ast.Call(func=ast.Name(id='str'), args=[value], keywords=[]):
            return folded(value, depth + 1)
        case ast.Call(func=ast.Attribute(value=owner, attr='decode')):
            return _folded_bytes(owner)
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=args, keywords=[]):
            return _folded_method(folded(owner, depth + 1), method, args, depth)
        case _:
            return None


def _folded_method(text: str | None, method: str, args: list[ast.expr], depth: int) -> str | None:
    if text is None:
        return None
    if method == 'join' and len(args) == 1:
        return _joined(text, _items(args[0], depth + 1))
    given = _pieces(args, depth)
    if method == 'format':
        return _filled(text, '{', r'\{(\d?)\}', given)
    if method not in _TEXT_METHODS or given is None:
        return None
    try:
        return _short(getattr(text, method)(*given))
    except TypeError:
        return None


def _folded_bytes(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=bytes(data)):
            return _short(data.decode('latin-1'))
        case ast.Call(func=ast.Name(id='bytes' | 'bytearray'), args=[ast.List(elts=items) | ast.Tuple(elts=items)]):
            values = [item.value if isinstance(item, ast.Constant) else None for item in items]
            codes = [value for value in values if isinstance(value, int) and 0 <= value < 256]
            return _short(bytes(codes).decode('latin-1')) if len(codes) == len(items) else None
        case _:
            return None


def _short(text: str) -> str | None:
    return text if len(text) <= _LONGEST else None


def _joined(glue: str, pieces: list[str] | None) -> str | None:
    return None if pieces is None else _short(glue.join(pieces))


def _pieces(parts: Iterable[ast.AST], depth: int) -> list[str] | None:
    pieces: list[str] = []
    for part in parts:
        piece = folded(part, depth + 1)
        if piece is None or len(pieces) == _LONGEST:
            return None
        pieces.append(piece)
    return pieces


def _items(node: ast.expr, depth: int) -> list[str] | None:
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return _pieces(items, depth)
        case ast.Call(func=ast.Name(id='reversed'), args=[value]) if depth < _DEPTH:
            items = _items(value, depth + 1)
            return items and items[::-1]
        case _:
            text = folded(node, depth)
            return None if text is None else list(text)


def _filled(template: str | None, mark: str, field: str, values: list[str] | None) -> str | None:
    """A template filled in, if its fields are plain: a placeholder that is left over cannot be resolved."""
    if template is None or values is None:
        return None
    texts, keys = re.split(field, template)[::2], re.findall(field, template)
    places = [int(key) if key.isdecimal() else place for place, key in enumerate(keys)]
    if any(mark in text for text in texts) or any(place >= len(values) for place in places):
        return None
    return _short(texts[0] + ''.join(values[place] + text for place, text in zip(places, texts[1:], strict=True)))


def _sliced(text: str | None, part: ast.Slice) -> str | None:
    try:
        bounds = [bound and ast.literal_eval(bound) for bound in (part.lower, part.upper, part.step)]
        return text and text[slice(*bounds)]
    except (ValueError, TypeError):
        return None


def _summands(node: ast.AST) -> list[ast.AST]:
    """The parts of a + b + c, first to last; of a very long sum the beginning stays one part."""
    parts: list[ast.AST] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and len(parts) <= _LONGEST:
        parts.append(node.right)
        node = node.left
    return [node, *reversed(parts)]


def _interpolated(value: ast.AST) -> ast.AST:
    match value:
        case ast.FormattedValue(value=inner, format_spec=None, conversion=-1 | 115):
            return inner
        case _:
            return value


def spelled_with_chr(node: ast.AST) -> bool:
    """Whether at least four characters of a string are made by chr()."""
    match node:
        case ast.BinOp(op=ast.Add()):
            parts = _summands(node)
        case ast.BinOp(op=ast.Mod(), right=ast.Tuple(elts=parts)) | ast.JoinedStr(values=parts):
            pass
        case ast.Call(func=ast.Attribute(attr='format'), args=parts):
            pass
        case ast.Call(func=ast.Attribute(attr='join'), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)]):
            pass
        case ast.Call(func=ast.Attribute(attr='join'), args=[ast.GeneratorExp() | ast.ListComp() as loop]):
            parts = _repeated(loop.elt, loop.generators[0].iter)
        case ast.Call(func=ast.Attribute(attr='join'), args=[ast.Call(func=ast.Name(id='map'), args=[make, source])]):
            parts = _repeated(ast.Call(make, [], []), source)
        case _:
            return False
    return sum(map(_is_chr, map(_interpolated, parts))) >= _CHR_PIECES


def _repeated(item: ast.AST, source: ast.expr) -> list[ast.AST]:
    """What a loop makes: as many items as a written-out list has, and enough of them from anything else."""
    return [item] * (len(source.elts) if isinstance(source, ast.List | ast.Tuple) else _CHR_PIECES)


def _is_chr(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'chr'


def is_reversal(node: ast.AST) -> bool:
    """Whether an expression is `text[::-1]`."""
    match node:
        case ast.Subscript(
            slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(ast.USub(), ast.Constant(value=1)))
        ):
            return True
        case _:
            return False


def _bound_names(roots: Iterable[ast.AST]) -> set[str]:
    """The names that a function with these parts owns."""
    bound, elsewhere, stack = set[str](), set[str](), list(roots)
    while stack:
        node = stack.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere.update(names)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name=name, asname=alias):
                bound.add(alias or name.partition('.')[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case _:
                pass
        stack.extend(ast.iter_child_nodes(node))
    return bound - elsewhere


def member_of(owner: str | None, name: str | None) -> str | None:
    """The dotted name of a member; of the builtins, just the name."""
    if owner is None or name is None:
        return None
    return name if owner in {'builtins', '__builtins__'} else f'{owner}.{name}'


class CellWalk:
    """Walks a cell in reading order and keeps track of what its names refer to.

    A scope maps a name to the dotted name it refers to, or to None for a name that is the cell's own. A name in no
    scope stands for itself: a builtin, or a module that an earlier cell imported.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._unconditional = {id(statement) for statement in tree.body}
        self._scopes: list[dict[str, str | None]] = [{}]

    def walk(self) -> None:
        """Inspect every node of the cell."""
        steps: list[_Step] = [self._tree]
        while steps:
            step = steps.pop()
            if isinstance(step, ast.AST):
                self.inspect(step)
                steps.extend(reversed(self._parts(step)))
            else:
                step()

    def inspect(self, node: ast.AST) -> None:
        """Called once for each node, when the names before it are known."""

    def bind(self, node: ast.AST, name: str, meaning: str | None) -> None:
        """Record what a name refers to. A name becomes the cell's own only where no branch can leave it unbound."""
        if meaning is not None or (len(self._scopes) == 1 and id(node) in self._unconditional):
            self._scopes[-1][name] = meaning

    def dotted(self, node: ast.AST, depth: int = 0) -> str | None:
        """The dotted name that an expression refers to, if that is known."""
        if depth > _DEPTH:
            return None
        match node:
            case ast.Name(id=name):
                return self._resolve(name)
            case ast.NamedExpr(value=value):
                return self.dotted(value, depth + 1)
            case ast.Attribute(value=owner, attr=attr):
                return member_of(self.dotted(owner, depth + 1), attr)
            case ast.Subscript(value=owner, slice=key):
                return self._entry(owner, folded(key), depth)
            case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[key, *_]) if method in LOOKUPS:
                return self._entry(owner, folded(key), depth)
            case ast.Call(func=func, args=args):
                return self._returned(self.dotted(func, depth + 1), args, depth)
            case _:
                return None

    def _resolve(self, name: str) -> str | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)

    def _entry(self, space: ast.expr, key: str | None, depth: int) -> str | None:
        """What stands under a key of a namespace: `vars(os)['system']`, `globals()['eval']`, `sys.modules['os']`."""
        match space:
            case ast.Call(func=ast.Name(id='globals' | 'locals' | 'vars'), args=[]):
                return key and self._resolve(key)
            case ast.Attribute(value=owner, attr='__dict__') | ast.Call(func=ast.Name(id='vars'), args=[owner]):
                return member_of(self.dotted(owner, depth + 1), key)
            case _:
                return key if self.dotted(space, depth + 1) in {'sys.modules', '__builtins__'} else None

    def _returned(self, function: str | None, args: list[ast.expr], depth: int) -> str | None:
        if function == 'getattr' and len(args) > 1:
            return member_of(self.dotted(args[0], depth + 1), folded(args[1]))
        module = folded(args[0]) if args and function in IMPORTERS else None
        return module if function == 'importlib.import_module' else module and module.partition('.')[0]

    def _parts(self, node: ast.AST) -> list[_Step]:
        children = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
                head = [child for child in children if not isinstance(child, ast.stmt)]
                return [*head, partial(self.bind, node, node.name, None), *self._inside([args, *body], body)]
            case ast.Lambda(args=args, body=body):
                return [args, *self._inside([args, body], [body])]
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first, loops = node.generators[0].iter, node.generators
                parts = [*children, *(part for loop in loops for part in ast.iter_child_nodes(loop))]
                inner = [part for part in parts if part is not first and not isinstance(part, ast.comprehension)]
                return [first, *self._inside([loop.target for loop in loops], inner)]
            case ast.Assign(targets=targets, value=value):
                return [*children, partial(self._assign, node, targets, value)]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                return [*children, partial(self._assign, node, [target], value)]
            case ast.ClassDef():
                return [*children, partial(self.bind, node, node.name, None)]
            case _:
                return list(children)

    def _inside(self, owners: Iterable[ast.AST], steps: Iterable[ast.AST]) -> list[_Step]:
        own = dict[str, str | None].fromkeys(_bound_names(owners))
        return [partial(self._scopes.append, own), *steps, partial(self._scopes.__delitem__, -1)]

    def _assign(self, node: ast.AST, targets: Iterable[ast.expr], value: ast.expr) -> None:
        meaning = self.dotted(value)
        for target in targets:
            for name in _bound_names([target]):
                self.bind(node, name, meaning if isinstance(target, ast.Name) else None)
