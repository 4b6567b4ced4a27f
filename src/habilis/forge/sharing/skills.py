"""Exports a tool as an Agent Skill: a folder with `SKILL.md`, which many agents read, and the code as scripts."""

import json
import re
import shutil
import tempfile
from pathlib import Path

from habilis.core.errors import ForgeError
from habilis.forge.checks.verification import packages_of, used_tools
from habilis.forge.contract import LIBRARY_MODULE, SOURCE_FILES, Candidate, Manifest
from habilis.forge.library.library import Library
from habilis.forge.source import read_source

_MAX_NAME = 64
_MAX_DESCRIPTION = 1024
_MAX_COMPATIBILITY = 500


def export_skill(library: Library, name: str, parent: Path) -> Path:
    """Write the skill into a new folder inside `parent`, named as the specification demands. Raises `ForgeError`."""
    candidate, made = library.candidate(name), library.manifest(name)
    target = parent / skill_name(name)
    if target.exists():
        msg = f'{target} exists already; delete it, or choose another folder'
        raise ForgeError(msg)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix='.skill-', dir=parent))
        work.chmod(0o755)
        try:
            _write(work, candidate, made)
            work.rename(target)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    except OSError as error:
        msg = f'cannot write {target}: {error.strerror}'
        raise ForgeError(msg) from error
    return target


def skill_name(name: str) -> str:
    """The name of the skill of a tool: `percent-of`. Raises `ForgeError` if there is none."""
    made = re.sub('[^a-z0-9]+', '-', name.lower())[:_MAX_NAME].strip('-')
    if not made:
        msg = f'{name} has no letter from a to z, which the name of a skill needs'
        raise ForgeError(msg)
    return made


def _write(folder: Path, candidate: Candidate, made: Manifest) -> None:
    scripts = folder / 'scripts'
    scripts.mkdir()
    (folder / 'SKILL.md').write_text(_page(candidate, made), encoding='utf-8')
    code, tests = SOURCE_FILES[candidate.language]
    (scripts / code).write_text(candidate.code, encoding='utf-8')
    (scripts / tests).write_text(candidate.tests, encoding='utf-8')
    used = used_tools(candidate)
    if used and candidate.language == 'javascript':
        msg = f'{candidate.name} uses other tools, which a skill in JavaScript cannot; export it to a .zip file'
        raise ForgeError(msg)
    if used:
        library = scripts / LIBRARY_MODULE
        library.mkdir()
        for tool in used:
            (library / f'{tool.name}.py').write_text(tool.code, encoding='utf-8')
        imports = [f'from {LIBRARY_MODULE}.{tool.name} import {tool.name} as {tool.name}\n' for tool in used]
        (library / '__init__.py').write_text(''.join(imports), encoding='utf-8')


def _page(candidate: Candidate, made: Manifest) -> str:
    source = read_source(candidate.name, candidate.code, candidate.language)
    code, tests = SOURCE_FILES[candidate.language]
    if candidate.language == 'python':
        needs, load = 'Python 3.11 or newer', f'from tool import {candidate.name}'
        how = f'; run them with `python -m pytest scripts/{tests}`'
    else:
        needs, load, how = 'a JavaScript engine', f"import {{ {candidate.name} }} from './{code}';", ''
    needs = ', '.join([needs, *packages_of(candidate)])
    head = {
        'name': skill_name(candidate.name),
        'description': _one_line(source.summary)[:_MAX_DESCRIPTION],
        'compatibility': f'Needs {needs}'[:_MAX_COMPATIBILITY],
    }
    lines = [f'{key}: {json.dumps(value, ensure_ascii=False)}' for key, value in head.items()]
    return f"""---
{chr(10).join(lines)}
metadata:
  version: "{made.version}"
---

# {candidate.name}

{source.documentation}

The function is in `scripts/{code}`:

```python
{source.signature}
```

Call it from the folder `scripts`:

```{candidate.language}
{load}
```

Its tests are in `scripts/{tests}`{how}.
"""


def _one_line(text: str) -> str:
    line = ' '.join(''.join(one if one.isprintable() else ' ' for one in text).split())
    return re.sub('-{3,}', '–', line)  # some readers end the head of the page at `---`, wherever it is
