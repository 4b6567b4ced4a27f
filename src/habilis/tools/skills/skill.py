"""`Skill`: know-how as a folder with `SKILL.md`, read leniently and written strictly (https://agentskills.io)."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from habilis.core.errors import SkillError
from habilis.core.narrowing import is_dict, items_in
from habilis.tools.skills.front_matter import FrontMatter, read_front_matter

PAGE = 'SKILL.md'
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_PAGE_BYTES = 200_000
MAX_FILES = 1000
MAX_BYTES = 20_000_000
"""Of all files of a skill."""

FIELDS = ('name', 'description', 'license', 'compatibility', 'allowed-tools', 'metadata')
_BY_CODE = frozenset({'read', 'write', 'edit', 'multiedit', 'notebookedit', 'glob', 'grep', 'ls', 'python'})
"""Tools of other agents for what code does itself."""

_SHELLS = frozenset({'bash', 'shell'})


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A skill with all its files."""

    name: str
    """As strict readers want it: lower case, with hyphens."""

    description: str
    """What it does and when to use it, in one line without control characters. Its author is not trusted."""

    body: str = field(repr=False)
    license: str = ''
    compatibility: str = ''
    allowed_tools: tuple[str, ...] = ()
    """The tools that it asks for, such as `Bash(git:*)`. It is not given any."""

    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further fields of its front matter."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """All files by path, `SKILL.md` too."""

    source: str = ''
    """Where it was found."""

    problems: tuple[str, ...] = ()
    """Why strict readers refuse it."""

    def __post_init__(self) -> None:
        if (valid := skill_name(self.name)) != self.name:
            msg = f'{self.name!r} is not a valid name; use {valid!r}'
            raise SkillError(msg)

    @cached_property
    def digest(self) -> str:
        """Hash of all files."""
        hashes = [(path, hashlib.sha256(data).hexdigest()) for path, data in sorted(self.files.items())]
        return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()

    def missing_tool(self, tools: Collection[str], no_processes: str) -> str:
        """Why it cannot be used: it asks for a tool that is not there. Empty if it can.

        `no_processes`: why code cannot start processes; empty if it can.
        """
        known = {name.casefold() for name in tools} | _BY_CODE | (set[str]() if no_processes else _SHELLS)
        for asked in self.allowed_tools:
            name = asked.partition('(')[0].casefold()
            if name not in known:
                reason = f'the sandbox starts no processes: {no_processes}' if name in _SHELLS else 'there is none'
                return f'the skill {self.name} asks for the tool {asked}, and {reason}'
        return ''

    def page(self) -> str:
        """Its `SKILL.md` as strict readers want it."""
        head: dict[str, str] = {
            'name': self.name,
            'description': _undashed(self.description)[:MAX_DESCRIPTION],
            'license': one_line(self.license),
            'compatibility': _undashed(one_line(self.compatibility))[:MAX_COMPATIBILITY],
            'allowed-tools': ' '.join(self.allowed_tools),
        }
        lines = [f'{key}: {_quoted(value)}' for key, value in head.items() if value]
        if self.metadata:
            lines += ['metadata:', *(f'  {_quoted(key)}: {_quoted(value)}' for key, value in self.metadata.items())]
        return '\n'.join(['---', *lines, '---', '', self.body.strip(), ''])


def one_line(text: str) -> str:
    """Untrusted text in one line, without control characters and marks that hide or reverse text."""
    return ' '.join(''.join(one if one.isprintable() else ' ' for one in text).split())


def _undashed(text: str) -> str:
    return re.sub('-{3,}', '–', text)  # some readers end the head of the page at `---`, wherever it is


def _quoted(text: str) -> str:
    return json.dumps(_undashed(one_line(text)), ensure_ascii=False)


def skill_name(text: str) -> str:
    """The nearest name that the specification permits: `percent-of`. Raises `SkillError` if there is none."""
    plain = unicodedata.normalize('NFKC', unicodedata.normalize('NFKC', text).lower())
    made = re.sub('-+', '-', ''.join(one if one.isalnum() and one == one.lower() else '-' for one in plain))
    if not (name := made.strip('-')[:MAX_NAME].strip('-')):
        msg = f'{one_line(text)[:100]!r} has no letter or digit, which the name of a skill needs'
        raise SkillError(msg)
    return name


def make_skill(files: Mapping[str, bytes], *, folder: str, source: str = '') -> Skill:
    """The skill of these files. `folder` is the name of its folder. Raises `SkillError`."""
    try:
        return _make_skill(files, folder, source)
    except SkillError as error:
        msg = f'the skill {source or folder} is refused: {error}'
        raise SkillError(msg) from error


def _make_skill(files: Mapping[str, bytes], folder: str, source: str) -> Skill:
    page = next((path for path in files if path.casefold() == PAGE.casefold()), None)
    if page is None:
        msg = f'it has no {PAGE}'
        raise SkillError(msg)
    check_files(files)
    try:
        raw = files[page].decode('utf-8')
    except UnicodeDecodeError as error:
        msg = f'its {PAGE} is not text in UTF-8'
        raise SkillError(msg) from error
    read = read_front_matter(raw)
    fields = {key.strip().lower().replace('_', '-'): value for key, value in read.fields.items()}
    description = one_line(_text(fields.get('description')))
    if not description:
        msg = 'it has no description, by which a model chooses it'
        raise SkillError(msg)
    given = fields.get('metadata')
    more = {key: _text(value) for key, value in fields.items() if key not in FIELDS}
    return Skill(
        name=skill_name(_text(fields.get('name')) or folder),
        description=description,
        body=read.body,
        license=_text(fields.get('license')),
        compatibility=_text(fields.get('compatibility')),
        allowed_tools=_tools(fields.get('allowed-tools')),
        metadata={**({str(key): _text(value) for key, value in given.items()} if is_dict(given) else {}), **more},
        files={**{path: data for path, data in files.items() if path != page}, PAGE: read.text.encode()},
        source=source,
        problems=_problems(read, folder),
    )


def check_files(files: Mapping[str, bytes]) -> None:
    """Refuse too many or too large files, and paths that are not inside one folder. Raises `SkillError`."""
    msg = ''
    if len(files) > MAX_FILES:
        msg = f'it has more than {MAX_FILES} files'
    elif sum(map(len, files.values())) > MAX_BYTES:
        msg = f'its files have more than {MAX_BYTES // 1_000_000} MB'
    elif any(len(data) > MAX_PAGE_BYTES for path, data in files.items() if path.casefold() == PAGE.casefold()):
        msg = f'its {PAGE} has more than {MAX_PAGE_BYTES:,} bytes'
    for path in files:
        parts = PurePosixPath(path).parts
        is_inside = path and not path.startswith('/') and '..' not in parts and '\\' not in path and ':' not in parts[0]
        if not is_inside or not path.isprintable():
            msg = f'{path!r} is not the path of a file inside its folder'
        elif any(str(parent) in files for parent in PurePosixPath(path).parents):
            msg = f'{path!r} is inside a file'
    if msg:
        raise SkillError(msg)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return '' if value is None else json.dumps(value, ensure_ascii=False, default=str)[:MAX_DESCRIPTION]


def _tools(value: object) -> tuple[str, ...]:
    texts = [_text(one) for one in items_in(value) or ()] if not isinstance(value, str) else [value]
    return tuple(one_line(name) for text in texts for name in re.findall(r'[^\s,(]+(?:\([^)]*\))?', text))


def _problems(read: FrontMatter, folder: str) -> tuple[str, ...]:
    """What the specification does not permit."""
    fields, found = read.fields, list[str](read.problems)
    if unknown := sorted(key for key in fields if key not in FIELDS):
        found.append(f'unknown fields: {", ".join(map(one_line, unknown))}; put them into metadata')
    name = fields.get('name')
    if not isinstance(name, str) or not name.strip() or name.strip() != skill_name(name):
        found.append(f'name must be lower-case letters, digits and single hyphens, {MAX_NAME} characters at most')
    elif unicodedata.normalize('NFKC', folder) != name.strip():
        found.append(f'the folder must have the name of the skill, {name.strip()}')
    for key, most in (('description', MAX_DESCRIPTION), ('compatibility', MAX_COMPATIBILITY)):
        value = fields.get(key, '')
        if not isinstance(value, str) or len(value) > most:
            found.append(f'{key} must be text of {most:,} characters at most')
    if 'description' not in fields:
        found.append('description is missing')
    if not isinstance(fields.get('allowed-tools', ''), str):
        found.append('allowed-tools must be text, with spaces between the names')
    if not is_dict(fields.get('metadata', {})):
        found.append('metadata must have a key and a text in each line')
    return tuple(found)


def check_unique(skills: Sequence[Skill]) -> None:
    """Refuse two skills of one name. Raises `SkillError`."""
    seen: dict[str, str] = {}
    for skill in skills:
        if skill.name in seen:
            msg = f'two skills have the name {skill.name}: {seen[skill.name]} and {skill.source}; leave one out'
            raise SkillError(msg)
        seen[skill.name] = skill.source
