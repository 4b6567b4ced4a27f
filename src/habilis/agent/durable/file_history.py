"""The history of a folder: a git repository of its own in the data folder, never the user's.

The files are read and written through `Workspace`, which follows no link, and git only stores them: no filter, hook or
configuration of the user applies. What `.gitignore` names is not stored.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from habilis.core.errors import WorkspaceError
from habilis.core.folders import data_folder
from habilis.sandbox.files.workspace import Workspace
from habilis.tools.toolsets.file_search import SKIPPED

MAX_FILES = 10_000
MAX_BYTES = 200 << 20
"""Maximum size of all files together."""

MAX_FILE_BYTES = 20 << 20
"""Maximum size of a file. Larger ones are left out, and left alone."""

LIST_SECONDS = 20.0
"""How long git may take to list the files. Code in the sandbox can make a pipe of `.gitignore`, which never ends."""

RECENT_SECONDS = 0.1
"""A file that changed so shortly before it was read is read again: it may change twice within one tick of its clock."""

_REF = 'refs/heads/files'
_EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
_LIST = ('ls-files', '-z', '--others', '--exclude-standard')
logger = logging.getLogger('habilis.agent')


class Stored(NamedTuple):
    """A file as it was stored."""

    mode: int
    digest: str
    state: tuple[int, int, int] = (0, 0, 0)
    """Size, modification time and inode when it was read."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A stored state of the folder."""

    commit: str
    too_large: tuple[str, ...] = ()
    """Files that were left out."""


@dataclass(kw_only=True)
class _Contents:
    """The files of a folder now."""

    files: dict[str, Stored] = field(default_factory=dict[str, Stored])
    data: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Of the files that differ from what was stored."""

    too_large: list[str] = field(default_factory=list[str])


class FileHistory:
    """Stores the states of one folder. Blocks; safe with several processes."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        name = hashlib.sha256(os.fsencode(workspace.folder)).hexdigest()[:32]
        self.folder = data_folder() / 'checkpoints' / f'{name}.git'

    def leave_out(self, path: Path) -> None:
        """Never store or restore a file or folder of the workspace, nor what belongs to it, such as `runs.db-wal`."""
        if rules := [f'/{name}{rest}\n' for name in _ignore_rules(path, self.workspace.folder) for rest in ('', '-*')]:
            with self._locked(), (self.folder / 'info' / 'exclude').open('a+') as file:
                file.seek(0)
                known = file.readlines()
                file.writelines(rule for rule in rules if rule not in known)

    def save(self, message: str) -> Saved:
        """Store the files. Returns the last state again if nothing has changed. Raises `WorkspaceError`."""
        with self._locked():
            return self._save(message)

    def restore(
        self, commit: str, *, keep: Iterable[str] = (), only: Container[str] | None = None
    ) -> tuple[str, list[str]]:
        """Bring the files of a state back, all or some, after storing those of now.

        Returns the state before, and the paths that were changed. Left alone are ignored files, files that are too
        large, and those to `keep`: they were too large for that state.
        """
        with self._locked():
            then = self._files_of(commit)
            before = self._save('before a restore', also=then)
            now = self._files_of(before.commit)
            if only is not None:
                others = {path: file for path, file in now.items() if path not in only}
                then = {path: file for path, file in then.items() if path in only} | others
            try:
                changed = self._change(now, then, {*before.too_large, *keep})
            except WorkspaceError as error:
                msg = f'{error}; not all files were restored, and what was there before is {before.commit[:10]}'
                raise WorkspaceError(msg) from error
            self._save(f'restored {commit}')
            return before.commit, changed

    def _change(self, now: Mapping[str, Stored], then: Mapping[str, Stored], kept: set[str]) -> list[str]:
        """Turn one state into the other. What is ignored then is not removed: it may have been there, unstored."""
        changed = [path for path, file in then.items() if now.get(path) != file]
        if left := sorted(kept.intersection(changed)):
            logger.warning('too large for checkpoints, so it stays as it is: %s', ', '.join(left[:5]))
        changed = [path for path in changed if path not in kept]
        gone = [path for path in now if path not in then and path not in kept]
        rules = [path for path in (*gone, *changed) if path.rpartition('/')[2] == '.gitignore']
        rules = [path for path in rules if now.keys().isdisjoint(_folders_of(path))]  # or there is nothing to keep
        self._put(rules, then)
        if rules:
            listed = self._listed()
            gone = [path for path in gone if path in listed or path in rules]
        self._put([path for path in (*gone, *changed) if path not in rules], then)
        return sorted([*gone, *changed])

    def _put(self, paths: Sequence[str], then: Mapping[str, Stored]) -> None:
        """Remove the files that are not in a state, and write those that are."""
        for path in paths:
            if path not in then:
                self.workspace.remove(path)
        found = [path for path in paths if path in then]
        for path, data in zip(found, self._blobs([then[path].digest for path in found]), strict=True):
            mode = then[path].mode
            self.workspace.remove_empty_folders(path)  # they are not stored
            self.workspace.replace(path, data, mode, self._permissions(path, mode))

    def go_back(self, commit: str, *, keep: Iterable[str] = ()) -> list[str]:
        """Bring the files of a state back, unless some have changed since the last state. Returns what was changed."""
        with self._locked():
            last, _ = self._read_index()
            now = self._save('before a fork').commit
            if self._files_of(now) == self._files_of(commit):
                return []
            if now != last:
                msg = f'the files of {str(self.workspace.folder)!r} have changed since the last checkpoint'
                raise WorkspaceError(msg)
        return self.restore(commit, keep=keep)[1]

    def copy_to(self, commit: str, target: Workspace) -> list[str]:
        """Write the files of a state to another folder, which must be empty. Returns their paths."""
        if next(target.walk(), None) is not None:
            msg = f'{str(target.folder)!r} is not empty'
            raise WorkspaceError(msg)
        files = self._files_of(commit)
        for path, data in zip(files, self._blobs([file.digest for file in files.values()]), strict=True):
            target.replace(path, data, files[path].mode)
        return list(files)

    def diff(self, before: str | None, after: str) -> str:
        """The unified diff of two states, decoded like a file name; of a binary file, its name and sizes."""
        text = os.fsdecode(self._git('diff', *_PLAIN_DIFF, before or _EMPTY_TREE, after))
        return _BINARY.sub(self._binary_change, text)

    def _binary_change(self, found: re.Match[str]) -> str:
        names = found[1]  # `a/NAME b/NAME`, perhaps in quotes
        name = names[: len(names) // 2].strip('"').removeprefix('a/')
        before, after = (0 if not id.strip('0') else int(self._git('cat-file', '-s', id)) for id in found.groups()[1:])
        return f'binary file {name}: {before:,} -> {after:,} bytes\n'

    def changes(self, before: str | None, after: str) -> list[tuple[str, str]]:
        """What is new (`A`), changed (`M`) and gone (`D`) between two states: letters with paths."""
        fields = self._git('diff', *_PLAIN_DIFF, '--name-status', '-z', before or _EMPTY_TREE, after).split(b'\0')
        return [(kind.decode(), os.fsdecode(path)) for kind, path in zip(fields[:-1:2], fields[1::2], strict=True)]

    def has(self, commit: str) -> bool:
        """Whether the state is stored here."""
        return self.folder.exists() and self._run('cat-file', '-e', f'{commit}^{{commit}}').returncode == 0

    # Store ------------------------------------------------------------------------------------------------------------

    def _save(self, message: str, *, also: Iterable[str] = ()) -> Saved:
        """Store the files that are not ignored, those that are stored already, and some more."""
        last, stored = self._read_index()
        contents = self._contents(stored, {*stored, *also})
        gone = [path for path in stored if path not in contents.files]
        changed = [path for path in contents.data if stored.get(path) is None or _differs(stored, contents, path)]
        commit = last
        if last is None or gone or changed:
            commit = self._import(message, last, gone, dict.fromkeys(changed, contents))
        assert commit is not None
        if commit != last or contents.files != stored:
            self._write_index(commit, contents.files)
        return Saved(commit=commit, too_large=tuple(contents.too_large))

    def _import(self, message: str, last: str | None, gone: Iterable[str], changed: Mapping[str, _Contents]) -> str:
        """Make a commit with one process, whatever the number of files."""
        text = message.encode('utf-8', 'replace')
        stream = [b'commit %s\nmark :1\n' % _REF.encode()]
        stream.append(b'committer Habilis <habilis@localhost> %d +0000\n' % time.time())
        stream.append(b'data %d\n%s\n' % (len(text), text))
        if last is not None:
            stream.append(b'from %s\n' % last.encode())
        stream += [b'D %s\n' % _quoted(path) for path in gone]
        for path, contents in changed.items():
            data, mode = contents.data[path], contents.files[path].mode
            stream.append(b'M %o inline %s\ndata %d\n%s\n' % (mode, _quoted(path), len(data), data))
        stream.append(b'get-mark :1\ndone\n')
        return self._git('fast-import', '--quiet', '--done', '--force', data=b''.join(stream)).decode().strip()

    def _contents(self, stored: Mapping[str, Stored], also: set[str]) -> _Contents:
        """The files now. Those that look as they were stored are not read again."""
        listed = self._listed() | also
        folders = {folder for path in listed for folder in _folders_of(path)}
        contents, total, now = _Contents(), 0, time.time()
        for path, info in self.workspace.walk('', lambda path: path not in folders):
            if path not in listed or not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
                continue
            if info.st_size > MAX_FILE_BYTES:
                contents.too_large.append(path)
                continue
            total += info.st_size
            if total > MAX_BYTES:
                raise WorkspaceError(_too_much(f'files of more than {MAX_BYTES >> 20} MiB', self.workspace))
            state, mode = (info.st_size, info.st_mtime_ns, info.st_ino), _git_mode(info.st_mode)
            known = stored.get(path)
            if known is not None and known.state == state and known.mode == mode:
                contents.files[path] = known
                continue
            with contextlib.suppress(WorkspaceError):  # it vanished, or cannot be read
                data = self._read(path, mode)
                digest = hashlib.sha1(b'blob %d\0' % len(data) + data, usedforsecurity=False).hexdigest()
                is_recent = now - info.st_mtime < RECENT_SECONDS
                contents.files[path] = Stored(mode=mode, digest=digest, state=(0, 0, 0) if is_recent else state)
                contents.data[path] = data
        return contents

    def _read(self, path: str, mode: int) -> bytes:
        if stat.S_ISLNK(mode):
            return self.workspace.read_link(path)
        return self.workspace.read(path, limit=MAX_FILE_BYTES)

    def _listed(self) -> set[str]:
        """The files that are not ignored. A repository inside, which git lists as one folder, is listed by itself."""
        found: set[str] = set()
        folders = ['']
        while folders:
            prefix = folders.pop()
            for path in self._listed_by_git(self.workspace.folder / prefix):
                name = prefix + path
                (folders.append if name.endswith('/') else found.add)(name)
                if len(found) + len(folders) > MAX_FILES:
                    raise WorkspaceError(_too_much(f'more than {MAX_FILES:,} files', self.workspace))
        return found

    def _listed_by_git(self, folder: Path) -> Generator[str]:
        """What git lists. Raises `WorkspaceError` if it does not list all: the rest would count as removed."""
        data = [f'--exclude=/{name}/' for name in _ignore_rules(data_folder(), folder)]  # this history, and the journal
        command = self._command(*_LIST, *data, tree=folder)
        try:
            git = subprocess.Popen(
                command,
                cwd=folder,  # git lists what is below the current folder
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            msg = f'{str(folder)!r} cannot be listed: {error.strerror}'
            raise WorkspaceError(msg) from error
        timer = threading.Timer(LIST_SECONDS, git.kill)
        timer.start()
        with git:
            try:
                assert git.stdout is not None
                rest = b''
                while chunk := git.stdout.read(1 << 16):
                    *paths, rest = (rest + chunk).split(b'\0')
                    yield from map(os.fsdecode, paths)
                failed = git.wait() != 0
            finally:
                timer.cancel()
                git.kill()
        if failed:
            why = f'git failed, or took longer than {LIST_SECONDS:g} s'
            msg = f'the files of {str(folder)!r} cannot be listed: {why}; choose a smaller workspace'
            raise WorkspaceError(msg)

    # Load -------------------------------------------------------------------------------------------------------------

    def _files_of(self, commit: str) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        for line in self._git('ls-tree', '-r', '-z', commit).split(b'\0')[:-1]:
            about, _, path = line.partition(b'\t')
            mode, _, digest = about.decode().split(' ')
            found[os.fsdecode(path)] = Stored(mode=int(mode, 8), digest=digest)
        return found

    def _blobs(self, digests: Iterable[str]) -> Generator[bytes]:
        names = ''.join(f'{digest}\n' for digest in digests)
        output, at = self._git('cat-file', '--batch', data=names.encode()) if names else b'', 0
        while at < len(output):
            end = output.index(b'\n', at)
            about = output[at:end].split(b' ')
            if about[1] == b'missing':
                msg = f'files of this checkpoint are missing in {str(self.folder)!r}'
                raise WorkspaceError(msg)
            size = int(about[2])
            yield output[end + 1 : end + 1 + size]
            at = end + size + 2

    def _permissions(self, path: str, mode: int) -> int | None:
        """Those of the file that is there now, but executable or not as the restored one; None if there is none."""
        with contextlib.suppress(WorkspaceError), self.workspace.opened(path) as file:
            now = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            return now if _git_mode(now) == mode else now & ~0o111 | ((now & 0o444) >> 2 if mode & 0o100 else 0)
        return None

    # The repository ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        """Create the repository if needed, and keep other processes out."""
        if shutil.which('git') is None:
            raise WorkspaceError(NO_GIT)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (self.folder / 'habilis.lock').open('w') as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                (self.folder / f'{_REF}.lock').unlink(missing_ok=True)  # of a git that was killed
                if not (self.folder / 'info' / 'exclude').exists():
                    self._git('init', '-q', '--bare', '--template=')
                    (self.folder / 'info').mkdir(exist_ok=True)
                    (self.folder / 'info' / 'exclude').write_text(''.join(f'{name}/\n' for name in SKIPPED))
                yield
        except OSError as error:
            msg = f'checkpoints cannot be stored in {str(self.folder)!r}: {error.strerror or error}'
            raise WorkspaceError(msg) from error

    def _read_index(self) -> tuple[str | None, dict[str, Stored]]:
        """The last commit, and the files that it has."""
        try:
            commit, files = json.loads((self.folder / 'habilis-index.json').read_bytes())
            stored = {
                path: Stored(mode=mode, digest=digest, state=(size, at, inode))
                for path, (mode, digest, size, at, inode) in files.items()
            }
        except (OSError, ValueError, TypeError):
            found = self._run('rev-parse', '--verify', '-q', _REF).stdout.decode().strip()
            return (found, self._files_of(found)) if found else (None, {})
        return str(commit), stored

    def _write_index(self, commit: str, files: Mapping[str, Stored]) -> None:
        rows = {path: (file.mode, file.digest, *file.state) for path, file in files.items()}
        new = self.folder / 'habilis-index.new'
        new.write_text(json.dumps([commit, rows]))
        new.replace(self.folder / 'habilis-index.json')

    def _git(self, *arguments: str, data: bytes = b'') -> bytes:
        done = self._run(*arguments, data=data)
        if done.returncode:
            reason = done.stderr.decode('utf-8', 'replace').strip().splitlines() or [f'exit code {done.returncode}']
            msg = f'the files of {str(self.workspace.folder)!r} were not stored or restored: git: {reason[0]}'
            raise WorkspaceError(msg)
        return done.stdout

    def _run(self, *arguments: str, data: bytes = b'') -> 'subprocess.CompletedProcess[bytes]':
        return subprocess.run(
            self._command(*arguments), input=data, env=_environment(), capture_output=True, check=False
        )

    def _command(self, *arguments: str, tree: Path | None = None) -> list[str]:
        where = [f'--git-dir={self.folder}', *(['-c', 'core.bare=false', f'--work-tree={tree}'] if tree else [])]
        return ['git', *where, '-c', 'core.compression=1', '-c', f'core.excludesFile={os.devnull}', *arguments]


NO_GIT = 'checkpoints of files need the command git: install git'
_BINARY = re.compile(
    r'^diff --git (.*)\n(?:(?!diff --git).*\n)*?index (\w+)\.\.(\w+).*\nBinary files .* differ\n', re.MULTILINE
)
_PLAIN_DIFF = ('--no-color', '--no-ext-diff', '--no-textconv', '--no-renames')


def _differs(stored: Mapping[str, Stored], contents: _Contents, path: str) -> bool:
    before, now = stored[path], contents.files[path]
    return (before.mode, before.digest) != (now.mode, now.digest)


def _git_mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return 0o120000
    return 0o100755 if mode & 0o100 else 0o100644


def _quoted(path: str) -> bytes:
    escaped = os.fsencode(path).replace(b'\\', b'\\\\').replace(b'"', b'\\"').replace(b'\n', b'\\n')
    return b'"%s"' % escaped


def _environment() -> dict[str, str]:
    """Without the user's configuration of git, and without variables that name another repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}
    return {**kept, 'GIT_CONFIG_NOSYSTEM': '1', 'GIT_CONFIG_GLOBAL': os.devnull, 'LC_ALL': 'C'}


def _folders_of(path: str) -> list[str]:
    """The folders above a path."""
    return [path[:at] for at in range(len(path)) if path[at] == '/']


def _ignore_rules(path: Path, folder: Path) -> list[str]:
    """The path as a rule of `.gitignore` in the folder; none if it is outside of it."""
    path = path.resolve()
    return [re.sub(r'([][*?])', r'\\\1', str(path.relative_to(folder)))] if path.is_relative_to(folder) else []


def _too_much(what: str, workspace: Workspace) -> str:
    return (
        f'the workspace {str(workspace.folder)!r} has {what}, too much for checkpoints: '
        'name folders to leave out in its .gitignore, or choose a smaller workspace'
    )
