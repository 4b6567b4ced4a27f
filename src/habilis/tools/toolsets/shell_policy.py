"""`CommandPolicy`: which commands `bash` runs. For tidiness: what isolates a command is the sandbox, not this.

The command is parsed with the grammar of bash, so that every command in it is seen: after a newline, in a condition, in
a substitution, in a here-document. What cannot be parsed is refused.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from habilis.core.errors import ToolDenied

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_COMMAND = 100_000
"""Maximum number of characters of a command that is checked."""

MAX_PARTS = 500
"""Maximum number of commands, and of here-documents: many of them take the parser minutes."""

MAX_NAMED = 30

READING_COMMANDS = (
    *('basename', 'cat', 'cmp', 'comm', 'cut', 'date', 'df', 'diff', 'dirname', 'du', 'echo', 'file', 'find', 'fold'),
    *('grep', 'head', 'jq', 'ls', 'md5sum', 'nl', 'paste', 'printf', 'ps', 'pwd', 'readlink', 'realpath', 'rev', 'rg'),
    *('seq', 'sha256sum', 'sleep', 'sort', 'stat', 'tac', 'tail', 'tr', 'tree', 'uname', 'uniq', 'wc', 'which'),
    *('whoami', ':', '[', 'cd', 'exit', 'false', 'read', 'return', 'shift', 'test', 'true', 'wait'),
    *('git blame', 'git branch', 'git branch --contains', 'git branch --list', 'git branch --merged', 'git diff'),
    *('git log', 'git ls-files', 'git show', 'git status'),
)
"""Commands that look at things and change none, except by `>`."""

_ARGUMENTS = {
    'find': ('-delete', '-exec*', '-ok*', '-fprint*', '-fls'),
    'sort': ('-o*', '-[!-]*o*', '--o*', '--co*'),
    'rg': ('--pre*', '--hostname-bin*'),
    'tree': ('-o*', '-[!-]*o*'),
    'date': ('-s*', '--s*'),
    'file': ('-C*', '--comp*'),
    'git branch': ('[!-]*', '-[dDmMcCfu]*', '-[!-]*[dDmMcCfu]*', '--[de]*', '--mo*', '--cop*', '--forc*', '--*set*'),
    'git diff': ('--out*', '--ext-*'),
    'git log': ('--out*', '--ext-*'),
    'git show': ('--out*', '--ext-*'),
}
"""Arguments with which a command of that list does more than look. Long options may be abbreviated."""

_VARIABLES = ('PATH', 'ENV', 'BASH_*', 'LD_*', 'PYTHON*', 'GIT_*', 'PAGER', 'PROMPT_COMMAND', 'RIPGREP_*', 'SHELLOPTS')
"""Variables that change what a command does; they may not be set."""

_DECLARED = ('-*n*', '*[*]*')
"""Another name for a variable, and a name that is not known before the command runs."""

_BACKTICK = re.compile(r'(?<!\\)(?:\\\\)*`')
_HIDDEN_CODE = re.compile(r'(?<!\\)(?:\\\\)*(?:`|\$\()')
_EXPANSIONS = ('simple_expansion', 'expansion', 'command_substitution', 'arithmetic_expansion', 'brace_expression')
_LITERALS = ('raw_string', 'ansi_c_string', 'comment', 'heredoc_body')


@dataclass(frozen=True, kw_only=True)
class CommandPolicy:
    """The commands that may be run. Needs the extra `shell`."""

    allow: Sequence[str] = READING_COMMANDS
    """Names, or names with their first arguments: `git status`. `*` stands for anything: `git *`; alone, for all."""

    extra: Sequence[str] = ()
    """More of them, beside `allow`."""

    def __post_init__(self) -> None:
        if isinstance(self.allow, str) or isinstance(self.extra, str):
            msg = "allow and extra are lists of commands: CommandPolicy(extra=['pytest'])"
            raise TypeError(msg)
        if not self._allows_all:
            _parser()  # says what to install

    @property
    def _allows_all(self) -> bool:
        return '*' in (*self.allow, *self.extra)

    def check(self, command: str) -> None:
        """Raise `ToolDenied` if a command in it may not be run."""
        if self._allows_all:
            return
        problem = self._problem(command)
        if problem:
            msg = f'bash was not called: {problem}'
            raise ToolDenied(msg)

    def _problem(self, command: str) -> str:
        if len(command) > MAX_COMMAND:
            return f'the command has more than {MAX_COMMAND:,} characters; put it into a file'
        if command.count('<<') > MAX_PARTS:
            return _TOO_MANY
        root = _parser().parse(command.encode('utf-8', 'replace')).root_node
        if root.has_error:
            return 'the command cannot be parsed; write it more simply'
        commands = 0
        for node in _descendants(root):
            commands += node.type == 'command'
            if commands > MAX_PARTS:
                return _TOO_MANY
            if node.type == 'command' and (problem := self._command_problem(node)):
                return problem
            if _hides_code(node):
                return f'it is not clear which commands {_text(node)[:100]} runs; write $(…) for each'
            refused = (*_VARIABLES, *_DECLARED) if node.type == 'declaration_command' else _VARIABLES
            for name in _names_set(node):
                if any(fnmatchcase(name, pattern) for pattern in refused):
                    return f'the variable {name} may not be set'
        return ''

    def _command_problem(self, node: 'Node') -> str:
        named = node.child_by_field_name('name')
        if named is None:  # only assignments
            return ''
        nodes = node.children_by_field_name('argument')
        name, arguments = _text(named), [_text(argument) for argument in nodes]
        if len(named.children) != 1 or named.children[0].type != 'word':
            return f'the name of a command must be written as it is, not as {name}'
        if any(_fits(entry, [name, *arguments]) for entry in self.extra):
            return ''
        allowed = [entry for entry in self.allow if _fits(entry, [name, *arguments])]
        if not allowed:
            return f'{name} is not an allowed command; allowed are {self._names()}'
        refused = [_refused_argument(nodes[entry.count(' ') :], _ARGUMENTS.get(entry, ())) for entry in allowed]
        return f'{name} may not be called with {refused[0]}' if all(refused) else ''

    def _names(self) -> str:
        names = list(dict.fromkeys((*self.extra, *self.allow)))
        return ', '.join(names[:MAX_NAMED]) + (' and more' if len(names) > MAX_NAMED else '')


_TOO_MANY = f'it has more than {MAX_PARTS:,} commands or here-documents; put them into a file'
_NEVER_EXPANDED = str.maketrans('*?[', '...', '"\'\\')
_NO_BRACES = str.maketrans('{}', '..')


@cache
def _parser() -> 'Parser':
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as error:
        msg = 'CommandPolicy needs a parser of bash: pip install "habilis[shell]"'
        raise ImportError(msg) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _descendants(root: 'Node') -> 'Iterator[Node]':
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(node.children)


def _text(node: 'Node') -> str:
    return (node.text or b'').decode('utf-8', 'replace')


def _names_set(node: 'Node') -> list[str]:
    """The names of the variables that a node sets or removes."""
    named: list[Node | None] = []
    if node.type in ('variable_assignment', 'for_statement'):
        named = [node.child_by_field_name('name') or node.child_by_field_name('variable')]
    elif node.type == 'expansion' and any(child.type in (':=', '=') for child in node.children):
        named = list(node.named_children[:1])
    elif node.type in ('declaration_command', 'unset_command'):
        named = list(node.named_children)
    elif node.type == 'command' and _text(node.children[0]) in ('read', 'printf'):
        named = list(node.children_by_field_name('argument'))
    return [re.split(r'[=[+]', _glob(each).removeprefix('-v'))[0] for each in named if each is not None]


def _hides_code(node: 'Node') -> bool:
    """Whether commands are in text that the grammar does not look into."""
    text = _text(node)
    if node.type == 'heredoc_redirect':
        start = next((_text(child) for child in node.children if child.type == 'heredoc_start'), '')
        is_literal = any(quote in start for quote in '"\'\\')
        bodies = [_text(child) for child in node.children if child.type == 'heredoc_body']
        return not is_literal and any(map(_BACKTICK.search, bodies))
    if node.type == 'command_substitution':
        return text.startswith('`') and '\\' in text
    if node.type == 'expansion':
        return text.endswith('@P}')
    is_leaf = node.is_named and not node.children and node.type not in _LITERALS
    return is_leaf and _HIDDEN_CODE.search(text) is not None


def _refused_argument(arguments: 'Sequence[Node]', patterns: Sequence[str]) -> str:
    """The first argument that fits a pattern, or may do so once it is expanded; empty if there is none."""
    for argument in arguments if patterns else ():
        glob = _glob(argument)
        for pattern in patterns:
            shortest = re.sub(r'\[[^]]*\]\*?|\*', '', pattern)
            if fnmatchcase(glob, pattern) or ('*' in glob and fnmatchcase(shortest, glob)):
                return _text(argument)
    return ''


def _glob(node: 'Node') -> str:
    """An argument without its quotes, and with `*` for what is not known before the command runs."""
    if node.type in _EXPANSIONS or (node.type == 'ansi_c_string' and '\\' in _text(node)):
        return '*'
    if not node.children or node.type == 'raw_string':
        is_quoted = node.type in ('raw_string', 'ansi_c_string', 'string_content')
        plain = _text(node).removeprefix('$').translate(_NEVER_EXPANDED)
        return plain.translate(_NO_BRACES) if is_quoted else plain
    return re.sub(r'\{.*\}', '*', ''.join(map(_glob, node.children)))


def _fits(entry: str, words: Sequence[str]) -> bool:
    """Whether a command starts with the words of an entry."""
    patterns = entry.split()
    needed = len(patterns) - (patterns[-1:] == ['*'])
    return len(words) >= needed and all(fnmatchcase(*pair) for pair in zip(words, patterns, strict=False))
