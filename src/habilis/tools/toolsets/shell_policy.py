"""`CommandPolicy`: which commands `bash` runs. For tidiness: what isolates a command is the sandbox, not this.

The command is parsed with the grammar of bash, so that every command in it is seen: after a newline, in a condition, in
a substitution, in a here-document. What cannot be parsed is refused.
"""

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

MAX_NAMED = 30

READING_COMMANDS = (
    *('basename', 'cat', 'cmp', 'comm', 'cut', 'date', 'df', 'diff', 'dirname', 'du', 'echo', 'file', 'find', 'fold'),
    *('grep', 'head', 'jq', 'ls', 'md5sum', 'nl', 'paste', 'printf', 'ps', 'pwd', 'readlink', 'realpath', 'rev', 'rg'),
    *('seq', 'sha256sum', 'sleep', 'sort', 'stat', 'tac', 'tail', 'tr', 'tree', 'uname', 'uniq', 'wc', 'which'),
    *('whoami', ':', '[', 'cd', 'exit', 'false', 'read', 'return', 'shift', 'test', 'true', 'wait'),
    *('git blame', 'git branch', 'git diff', 'git log', 'git ls-files', 'git show', 'git status'),
)
"""Commands that look at things and change none, except by `>`."""

_ARGUMENTS = {
    'find': ('-delete', '-exec*', '-ok*', '-fprint*', '-fls'),
    'sort': ('-o*', '--output*', '--compress-program*'),
    'rg': ('--pre*',),
    'tree': ('-o*',),
    'date': ('-s*', '--set*'),
    'git branch': ('-*[dDmMcCf]*', '--delete*', '--move*', '--copy*', '--force*'),
    'git diff': ('--output*', '--ext-diff'),
    'git log': ('--output*', '--ext-diff'),
    'git show': ('--output*', '--ext-diff'),
}
"""Arguments with which a command of that list does more than look."""

_QUOTES = str.maketrans('', '', '"\'\\')
_VARIABLES = ('PATH', 'IFS', 'ENV', 'BASH_*', 'LD_*', 'PYTHON*', 'GIT_*', 'PAGER', 'PROMPT_COMMAND', 'SHELLOPTS')
"""Variables that change what a command does; they may not be set."""


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
        root = _parser().parse(command.encode('utf-8', 'replace')).root_node
        if root.has_error:
            return 'the command cannot be parsed; write it more simply'
        for node in _descendants(root):
            if node.type == 'command' and (problem := self._command_problem(node)):
                return problem
            if node.type == 'variable_assignment' and (name := node.child_by_field_name('name')) is not None:
                text = _text(name).partition('[')[0]
                if any(fnmatchcase(text, pattern) for pattern in _VARIABLES):
                    return f'the variable {text} may not be set'
        return ''

    def _command_problem(self, node: 'Node') -> str:
        named = node.child_by_field_name('name')
        if named is None:  # only assignments
            return ''
        name, arguments = _text(named), [_text(argument) for argument in node.children_by_field_name('argument')]
        if len(named.children) != 1 or named.children[0].type != 'word':
            return f'the name of a command must be written as it is, not as {name}'
        if any(_fits(entry, [name, *arguments]) for entry in self.extra):
            return ''
        allowed = [entry for entry in self.allow if _fits(entry, [name, *arguments])]
        if not allowed:
            return f'{name} is not an allowed command; allowed are {self._names()}'
        refused = [pattern for entry in allowed for pattern in _ARGUMENTS.get(entry, ())]
        for argument in arguments if refused else ():
            plain = argument.translate(_QUOTES)
            if plain.startswith('$') or any(fnmatchcase(plain, pattern) for pattern in refused):
                return f'{name} may not be called with {argument}'
        return ''

    def _names(self) -> str:
        names = list(dict.fromkeys((*self.extra, *self.allow)))
        return ', '.join(names[:MAX_NAMED]) + (' and more' if len(names) > MAX_NAMED else '')


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


def _fits(entry: str, words: Sequence[str]) -> bool:
    """Whether a command starts with the words of an entry."""
    patterns = entry.split()
    needed = len(patterns) - (patterns[-1:] == ['*'])
    return len(words) >= needed and all(fnmatchcase(*pair) for pair in zip(words, patterns, strict=False))
