"""A repository for the conformance suite, and code that attacks the files in it that other programs obey."""

import os
from pathlib import Path

_GIT = {
    'HEAD': 'ref: refs/heads/main\n',
    'config': '[core]\n\tbare = false\n',
    'hooks/pre-commit.sample': '#!/bin/sh\n',
}
_GIT_FILES = ('config', 'config.worktree', 'hooks')
_START = ('.git', '.bashrc', '.zshrc', '.envrc', '.gitmodules', '.mcp.json', 'habilis.toml', 'tasks.json', '.idea')
_BARE = "os.makedirs('{0}objects')\nos.makedirs('{0}refs')\nopen('{0}HEAD', 'w').write('ref: refs/heads/main')\n"
_CONFIG = '[core]\n\tfsmonitor = touch /tmp/broken-into\n'

ATTACKS = (
    f"open('.git/config', 'a').write({_CONFIG!r})",
    "open('.git/config', 'r+').write('#')",
    "os.remove('.git/config')",
    "open('.git/config.worktree', 'w')",
    "open('.git/new', 'w').write('x')\nos.replace('.git/new', '.git/config')",
    "open('.git/hooks/pre-commit', 'w').write('#!/bin/sh')",
    "os.rename('.git/hooks', '.git/old')\nos.mkdir('.git/hooks')\nopen('.git/hooks/post-checkout', 'w')",
    "os.rename('.git/hooks', 'old')\nos.symlink('../old', '.git/hooks')",
    f"os.rename('.git', 'old')\nos.mkdir('.git')\nopen('.git/config', 'w').write({_CONFIG!r})",
    "os.rename('.git', 'old')\nos.symlink('old', '.git')",
    "os.rename('.git', 'old')\nopen('.git', 'w').write('gitdir: old')",
    "os.link('.git/config', 'alias')\nopen('alias', 'a').write('x')\nos.remove('alias')",
    f"os.makedirs('new/.git')\nopen('new/.git/config', 'w').write({_CONFIG!r})",
    f"os.makedirs('new/.GIT')\nopen('new/.GIT/Config', 'w').write({_CONFIG!r})",
    "open('sub/.git/config', 'a').write('x')",
    "open('.git/modules/lib/config', 'a').write('x')",
    "open('work/.git', 'w').write('gitdir: ../evil')",
    _BARE.format('') + "open('config', 'w')",
    "os.makedirs('bare')\n" + _BARE.format('bare/') + "open('bare/config', 'w')",
    "open('.gitmodules', 'w')",
    "open('.bashrc', 'a').write('x')",
    "open('.ZSHRC', 'w')",
    "open('.envrc', 'w')\nopen('.mcp.json', 'w')",
    "os.mkdir('.vscode')\nopen('.vscode/tasks.json', 'w').write('{}')",
    "os.symlink('sub', '.idea')",
    "open('habilis.toml', 'w')",
    "for n in range(2500): os.mkdir(f'.a{n}')\nopen('sub/.git/config', 'a').write('x')",
)
"""Each changes a file that other programs obey, or makes one."""


def make_repository(folder: Path) -> None:
    """A folder with repositories as git makes them, and a start file of a shell."""
    for repository in ('.git', 'sub/.git', '.git/modules/lib'):
        for name, text in _GIT.items():
            path = folder / repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding='utf-8')
        for name in ('objects', 'refs'):
            (folder / repository / name).mkdir()
    (folder / 'work').mkdir()
    (folder / 'work' / '.git').write_text('gitdir: ../.git/worktrees/work\n', encoding='utf-8')
    (folder / '.bashrc').write_text('alias ll="ls -l"\n', encoding='utf-8')


def obeyed_files(folder: Path) -> dict[str, str]:
    """What the programs of the user would obey, by path. A repository that was moved to `old` counts as not moved."""
    found: dict[str, str] = {}
    for root, folders, names in os.walk(folder):
        here = Path(root)
        is_git = here.name.casefold() == '.git' or {'HEAD', 'objects', 'refs'} <= {*folders, *names}
        for name in (*names, *(one for one in folders if (here / one).is_symlink())):
            is_obeyed = name.casefold() in _START or (is_git and name.casefold() in _GIT_FILES) or here.name == 'hooks'
            if is_obeyed and not name.endswith('.undone'):
                path = here / name
                text = os.readlink(path) if path.is_symlink() else path.read_text(encoding='utf-8')
                found[path.relative_to(folder).as_posix().replace('old/', '.git/')] = text
    return found
