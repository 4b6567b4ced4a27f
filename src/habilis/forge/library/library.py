"""The library: a folder of readable tools under version numbers.

    percent_of/current        the number of the version in use
    percent_of/v1/tool.py, test_tool.py, tool.json    (tool.js and test_tool.js for JavaScript)

The folders are the truth. The index beside them (`.index.db`) is made anew from them at any time.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from habilis.core.errors import ForgeError, ToolDefinitionError, ToolExists, ToolNotFound
from habilis.core.regular_files import read_regular, read_regular_text
from habilis.forge.contract import FORMAT, SOURCE_FILES, Candidate, Language, Manifest
from habilis.forge.library.meanings import Meanings, TextEmbedder
from habilis.forge.library.packages import check_packages
from habilis.forge.library.usage import UsageLog
from habilis.forge.source import read_source
from habilis.tools.search_index import FoundTool, IndexedTool, SearchIndex
from habilis.tools.tool_names import check_name

MANIFEST, CURRENT = 'tool.json', 'current'
CODE, TESTS = SOURCE_FILES['python']
MERGED = 'merged'
"""In place of `current`: the tool that this one was merged into. Its versions stay for those that use them."""

_NEW = '.new-'
_BY_WORDS = 50
"""Tools whose words are compared where their meaning is, too."""

_MEANING = 2 / 3
"""Weight of meaning beside words: the best of each half of `evals.tool_search`. Rank fusion finds fewer."""

_MANIFEST = TypeAdapter(Manifest)


class Library:
    """Tools in a folder. Any number of processes may use it at the same time."""

    def __init__(self, folder: str | os.PathLike[str], *, embedder: TextEmbedder | None = None) -> None:
        """The folder is created when the first tool is added; with an embedder, tools are found by meaning, too."""
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            msg = f'{self.folder} is a file, not the folder of a library; choose another one'
            raise ForgeError(msg)
        self._index = SearchIndex(self.folder / '.index.db')
        self.usage = UsageLog(self.folder / '.usage.db')
        self._meanings = None if embedder is None else Meanings(self.folder / '.meanings.db', embedder)

    # Read -------------------------------------------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name.isidentifier() and (self.folder / name / CURRENT).is_file()

    def names(self) -> list[str]:
        """Names of all tools."""
        try:
            folders = [entry.name for entry in os.scandir(self.folder) if not entry.name.startswith('.')]
        except FileNotFoundError:
            return []
        return sorted(name for name in folders if (self.folder / name / CURRENT).is_file())

    def versions(self, name: str) -> list[int]:
        """Numbers of the versions of a tool, oldest first. Raises `ToolNotFound`."""
        return _numbers(self._folder(name))

    def current(self, name: str) -> int:
        """Number of the version in use. Raises `ToolNotFound`."""
        folder = self._folder(name)
        text = read_regular_text(folder / CURRENT).strip()
        if not text.isdigit() or not (folder / f'v{text}').is_dir():
            msg = f'{folder / CURRENT} names no version of {name}: {text[:40]!r}; write one of {self.versions(name)}'
            raise ForgeError(msg)
        return int(text)

    def manifest(self, name: str, version: int | None = None) -> Manifest:
        """Everything about a version but its source. Raises `ToolNotFound`, and `ForgeError` if it is damaged."""
        path = self._version(name, version) / MANIFEST
        try:
            made = _MANIFEST.validate_json(read_regular(path))
        except (OSError, ValidationError) as error:
            msg = f'{path} cannot be read: {str(error).splitlines()[0]}'
            raise ForgeError(msg) from error
        if made.format > FORMAT:
            msg = f'{path} was written by a newer Habilis (format {made.format})'
            raise ForgeError(msg)
        return made

    def candidate(self, name: str, version: int | None = None) -> Candidate:
        """Source of a version, with the source of all that it uses."""
        return self._candidate(name, version, ())

    def is_edited(self, name: str, version: int | None = None) -> bool:
        """Whether a file was changed by hand since it was registered."""
        folder = self._version(name, version)
        return self.manifest(name, version).hashes != _hashes(folder)

    def search(self, query: str, *, limit: int = 5, threshold: float = 0.0) -> list[FoundTool]:
        """The tools that fit best, best first; `threshold`: share of the query's weight that a tool must match."""
        try:
            found = self._search(query, limit, threshold)
        except sqlite3.DatabaseError:  # damaged: it is made from the folders anyway
            self._index.reset()
            found = self._search(query, limit, threshold)
        if len({one.score for one in found}) < len(found):  # of equals, the most used first
            successes = self.usage.successes([one.name for one in found])
            found.sort(key=lambda one: (-one.score, -successes.get(one.name, 0)))
        return found[:limit]

    def _search(self, query: str, limit: int, threshold: float) -> list[FoundTool]:
        words, similar = self.scores(query)
        if not similar:
            found = self._index.search(query, limit=2 * limit, threshold=threshold)
            return [one for one in found if self._has_code(one)]
        scores = {
            name: _MEANING * similar.get(name, 0) + (1 - _MEANING) * words.get(name, 0) for name in {*words, *similar}
        }
        best = sorted((name for name in scores if scores[name] >= threshold), key=lambda name: -scores[name])
        found = self._index.find({name: round(scores[name], 4) for name in best[: 2 * limit]})
        return [one for one in found if self._has_code(one)]

    def scores(self, query: str) -> tuple[dict[str, float], dict[str, float]]:
        """How well tools fit a query by its words and by its meaning, which `search` weighs."""
        self._refresh()
        words = {one.name: one.score for one in self._index.search(query, limit=_BY_WORDS, threshold=0)}
        return words, {} if self._meanings is None else self._meanings.similar(query, self._texts())

    def _texts(self) -> dict[str, list[str]]:
        """What the meaning of each tool is read from: what it does, and what it was used for."""
        texts = {name: [f'{name.replace("_", " ")}: {what}'] for name, what in self._index.summaries().items()}
        for task, name in self.usage.single_uses():
            if name in texts:
                texts[name].append(task)
        return texts

    def _has_code(self, found: FoundTool) -> bool:
        folder = self.folder / found.name
        files = (folder / f'v{found.version}' / code for code, _ in SOURCE_FILES.values())
        return (folder / CURRENT).is_file() and any(path.is_file() for path in files)

    def indexed(self) -> dict[str, int]:
        """The tools in the index with their versions, which differ from the folders only after changes by hand."""
        self._refresh()
        return self._index.versions()

    def uses_of(self, code: str, name: str, language: Language = 'python') -> dict[str, Candidate]:
        """The tools that code of this name imports, in their current versions. Raises `ToolNotFound`."""
        return {used: self.candidate(used) for used in read_source(name, code, language).uses}

    # Change -----------------------------------------------------------------------------------------------------------

    def add(self, candidate: Candidate, *, replaces: bool = False, **facts: object) -> Manifest:
        """Keep a verified candidate as a new tool, or as the next version of one (`replaces`).

        `facts` are fields of the manifest. Raises `ToolExists`, or `ForgeError` for source that cannot be a tool.
        """
        name, source = candidate.name, read_source(candidate.name, candidate.code, candidate.language)
        self._check_uses(name, source.uses, candidate.language)
        check_packages(name, candidate.packages)
        with self._locked():
            if (self.folder / name / CURRENT).is_file() and not replaces:
                msg = f'there is already a tool {name!r}; choose another name, or make a new version of it'
                raise ToolExists(msg)
            version = max(_numbers(self.folder / name), default=0) + 1
            made = Manifest(
                name=name,
                version=version,
                summary=source.summary,
                signature=source.signature,
                created=datetime.now(UTC),
                packages=candidate.packages,
                uses={used: self.current(used) for used in source.uses},
                language=candidate.language,
            )
            made = replace(made, **facts)  # pyright: ignore[reportArgumentType]
            made = self._write(candidate, made)
            self._index.put(_entry(made, source.documentation))
            self._index.mark(self._stamp())
        return made

    def use_version(self, name: str, version: int) -> Manifest:
        """Use an earlier or later version from now on."""
        made = self.manifest(name, version)
        with self._locked():
            self._set_current(name, version)
            documentation = read_source(name, self.candidate(name, version).code, made.language).documentation
            self._index.put(_entry(made, documentation))
        return made

    def remove(self, name: str) -> None:
        """Delete a tool with all versions. Raises `ForgeError` if another tool uses it."""
        if users := self.users_of(name):
            msg = f'{name} is used by {", ".join(users)}: delete these first'
            raise ForgeError(msg)
        with self._locked():
            folder = self._folder(name)
            (folder / CURRENT).unlink()  # from here on it is not visible
            shutil.rmtree(folder)
            self._index.drop(name)
            self._index.mark(self._stamp())

    def hide(self, name: str, *, merged_into: str) -> None:
        """Make a tool invisible. Its versions stay; `use_version` makes it visible again."""
        with self._locked():
            folder = self._folder(name)
            (folder / MERGED).write_text(f'{merged_into}\n', encoding='utf-8')
            _flush(folder / MERGED)
            (folder / CURRENT).unlink()
            self._index.drop(name)

    def merged_into(self, name: str) -> str:
        """The tool that took the place of one that is hidden; empty if it is not."""
        path = self.folder / name / MERGED
        hidden = name.isidentifier() and name not in self and path.is_file()
        return read_regular_text(path).strip() if hidden else ''

    def users_of(self, name: str) -> list[str]:
        """Tools whose current version imports this one."""
        self._folder(name)
        return [other for other in self.names() if name in self.uses(other)]

    def uses(self, name: str) -> Mapping[str, int]:
        """Tools that the current version imports, with their versions. A damaged tool uses nothing."""
        try:
            return self.manifest(name).uses
        except ForgeError:
            return {}

    def accept_edits(self, name: str, version: int) -> Manifest:
        """Make the manifest agree with files that were edited by hand."""
        with self._locked():
            folder = self._version(name, version)
            known = self.manifest(name, version)
            source = read_source(name, _text(folder / SOURCE_FILES[known.language][0]), known.language)
            self._check_uses(name, source.uses, known.language)
            made = replace(
                known,
                summary=source.summary,
                signature=source.signature,
                uses={used: known.uses.get(used) or self.current(used) for used in source.uses},
                hashes=_hashes(folder),
            )
            new = folder / f'.{MANIFEST}-new'
            new.write_bytes(_MANIFEST.dump_json(made, indent=2) + b'\n')
            _flush(new)
            new.replace(folder / MANIFEST)
            self._index.put(_entry(self.manifest(name), source.documentation))
        return made

    def remove_leftovers(self) -> list[str]:
        """Delete what killed writers have left. Returns the names of the folders."""
        with self._locked():  # nobody writes now
            left = [path for path in self.folder.glob(f'{_NEW}*') if path.is_dir()]
            for path in left:
                shutil.rmtree(path)
        return [path.name for path in left]

    def rebuild_index(self) -> int:
        """Rebuild the index from the folders. Returns the number of tools."""
        if not self.folder.is_dir():
            return 0
        entries = [entry for name in self.names() if (entry := self._read_entry(name)) is not None]
        self._index.reset()
        self._index.replace_all(entries)
        self._index.mark(self._stamp())
        return len(entries)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _folder(self, name: str) -> Path:
        try:
            folder = self.folder / check_name(name)
        except ToolDefinitionError as error:
            raise ToolNotFound(str(error).partition(';')[0]) from error
        if not (folder / CURRENT).is_file():
            if other := self.merged_into(name):
                last = max(_numbers(folder), default=1)
                msg = f'{name} was merged into {other}; to use it again: habilis tools rollback {name} {last}'
                raise ToolNotFound(msg)
            near = self.search(name.replace('_', ' '), limit=1)
            hint = f'; did you mean {near[0].name!r}?' if near else ''
            msg = f'there is no tool {name!r} in {self.folder}{hint}'
            raise ToolNotFound(msg)
        return folder

    def _version(self, name: str, version: int | None) -> Path:
        number = self.current(name) if version is None else version
        folder = (self.folder / name if self.merged_into(name) else self._folder(name)) / f'v{number}'
        if not folder.is_dir():
            msg = f'{name} has no version {number}; it has {", ".join(map(str, _numbers(folder.parent)))}'
            raise ToolNotFound(msg)
        return folder

    def _candidate(self, name: str, version: int | None, inside: tuple[str, ...]) -> Candidate:
        if name in inside:
            msg = f'{name} uses itself, through {", ".join(inside)}'
            raise ForgeError(msg)
        folder, made = self._version(name, version), self.manifest(name, version)
        check_packages(name, made.packages)
        uses: Mapping[str, Candidate] = {
            used: self._candidate(used, number, (*inside, name)) for used, number in made.uses.items()
        }
        code, tests = (_text(folder / file) for file in SOURCE_FILES[made.language])
        return Candidate(name=name, code=code, tests=tests, packages=made.packages, uses=uses, language=made.language)

    def _check_uses(self, name: str, uses: tuple[str, ...], language: Language) -> None:
        """Refuse tools that are not there or of another language, and cycles."""
        pending, seen = list(uses), set[str]()
        while pending:
            used = pending.pop()
            if used == name:
                msg = f'{name} would use itself, through {", ".join(uses)}'
                raise ForgeError(msg)
            if used not in seen:
                seen.add(used)
                made = self.manifest(used)
                if made.language != language:
                    msg = f'{name} uses {used}, which is written in another language ({made.language})'
                    raise ForgeError(msg)
                pending += made.uses

    def _write(self, candidate: Candidate, made: Manifest) -> Manifest:
        """Write a version so that it appears whole or not at all."""
        target = self.folder / made.name
        target.mkdir(exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.folder))
        try:
            for file, text in zip(SOURCE_FILES[candidate.language], (candidate.code, candidate.tests), strict=True):
                (work / file).write_text(text, encoding='utf-8')
            whole = replace(made, hashes=_hashes(work))
            (work / MANIFEST).write_bytes(_MANIFEST.dump_json(whole, indent=2) + b'\n')
            for path in work.iterdir():
                _flush(path)
            work.rename(target / f'v{made.version}')
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        self._set_current(made.name, made.version)
        return whole

    def _set_current(self, name: str, version: int) -> None:
        path = self.folder / name / CURRENT
        new = path.with_name('.current-new')
        new.write_text(f'{version}\n', encoding='utf-8')
        _flush(new)
        new.replace(path)
        path.with_name(MERGED).unlink(missing_ok=True)
        _flush(path.parent)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        """One writer at a time, over all processes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe of that name must not block
        with os.fdopen(os.open(self.folder / '.lock', flags, 0o666), 'rb', buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _stamp(self) -> str:
        """Changes when a tool is added or deleted, also by hand."""
        try:
            return str(self.folder.stat().st_mtime_ns)
        except FileNotFoundError:
            return ''

    def _refresh(self) -> None:
        if self._index.is_marked(self._stamp()):
            return
        names, known = set(self.names()), self._index.versions().keys()
        for name in known - names:
            self._index.drop(name)
        for name in names - known:
            entry = self._read_entry(name)
            if entry is not None:
                self._index.put(entry)
        self._index.mark(self._stamp())

    def _read_entry(self, name: str) -> IndexedTool | None:
        """The entry of a tool; None if its files are damaged (`doctor` names those)."""
        try:
            made, candidate = self.manifest(name), self.candidate(name)
            return _entry(made, read_source(name, candidate.code, made.language).documentation)
        except (ForgeError, OSError, UnicodeDecodeError):
            return None


def _entry(made: Manifest, documentation: str) -> IndexedTool:
    return IndexedTool(
        name=made.name,
        version=made.version,
        summary=made.summary,
        signature=made.signature,
        text=f'{documentation} {" ".join(made.tags)} {made.request}',
    )


def _numbers(folder: Path) -> list[int]:
    """Numbers of the versions in the folder of a tool, oldest first."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    except FileNotFoundError:
        return []
    return sorted(int(name[1:]) for name in names if re.fullmatch(r'v[0-9]{1,9}', name))


def _text(path: Path) -> str:
    try:
        return read_regular_text(path)
    except (OSError, UnicodeDecodeError) as error:
        msg = f'{path} cannot be read: {error}'
        raise ForgeError(msg) from error


def _hashes(folder: Path) -> dict[str, str]:
    present = [name for files in SOURCE_FILES.values() for name in files if (folder / name).is_file()]
    return {name: hashlib.sha256(read_regular(folder / name)).hexdigest() for name in present}


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
