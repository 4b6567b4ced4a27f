"""A tool as an Agent Skill, which many agents read: its code as scripts, and all of it as a file to import again."""

from pathlib import Path

from habilis.core.errors import ForgeError
from habilis.core.regular_files import read_regular
from habilis.forge.checks.verification import packages_of, used_tools
from habilis.forge.contract import LIBRARY_MODULE, SOURCE_FILES, Candidate
from habilis.forge.library.library import Library
from habilis.forge.sharing.archives import pack_archive, read_archive
from habilis.forge.sharing.transfer import collect
from habilis.forge.source import read_source
from habilis.tools.skills.skill import Skill, one_line, skill_name
from habilis.tools.skills.writing import write_skill

ARCHIVE = 'assets/tools.zip'


def export_skill(library: Library, name: str, parent: Path) -> Path:
    """Write the skill of a tool into a new folder inside `parent`. Raises `ForgeError` or `SkillError`."""
    candidate, version = library.candidate(name), library.manifest(name).version
    source = read_source(candidate.name, candidate.code, candidate.language)
    needs = 'Python 3.11 or newer' if candidate.language == 'python' else 'a JavaScript engine'
    skill = Skill(
        name=skill_name(name),
        description=one_line(source.summary),
        compatibility=f'Needs {", ".join([needs, *packages_of(candidate)])}',
        metadata={'version': str(version)},
        body=_body(candidate),
        files={**_scripts(candidate), ARCHIVE: pack_archive(collect(library, [name]))},
    )
    return write_skill(skill, parent)


def tool_archive(folder: Path) -> Path:
    """The file in an exported skill that `import_tools` takes. A file is returned as it is. Raises `ForgeError`."""
    if not folder.is_dir():
        return folder
    path = folder / ARCHIVE
    if not path.is_file():
        msg = f'{folder} is not a tool that was exported as a skill; use other skills with habilis run --skills'
        raise ForgeError(msg)
    tools = read_archive(path).tools
    for code in (file for file, _ in SOURCE_FILES.values() if (folder / 'scripts' / file).exists()):
        script = read_regular(folder / 'scripts' / code)
        if all(files.get(code) != script for files in tools.values()):
            msg = f'scripts/{code} in {folder} was edited after the export; add it with habilis tools add or edit'
            raise ForgeError(msg)
    return path


def _scripts(candidate: Candidate) -> dict[str, bytes]:
    code, tests = SOURCE_FILES[candidate.language]
    texts = {code: candidate.code, tests: candidate.tests}
    used = used_tools(candidate)
    if used and candidate.language == 'javascript':
        msg = f'{candidate.name} uses other tools, which a skill in JavaScript cannot; export it to a .zip file'
        raise ForgeError(msg)
    if used:
        texts |= {f'{LIBRARY_MODULE}/{tool.name}.py': tool.code for tool in used}
        imports = [f'from {LIBRARY_MODULE}.{tool.name} import {tool.name} as {tool.name}\n' for tool in used]
        texts[f'{LIBRARY_MODULE}/__init__.py'] = ''.join(imports)
    return {f'scripts/{path}': text.encode() for path, text in texts.items()}


def _body(candidate: Candidate) -> str:
    source = read_source(candidate.name, candidate.code, candidate.language)
    code, tests = SOURCE_FILES[candidate.language]
    if candidate.language == 'python':
        load, how = f'from tool import {candidate.name}', f'; run them with `python -m pytest scripts/{tests}`'
    else:
        load, how = f"import {{ {candidate.name} }} from './{code}';", ''
    return f"""# {candidate.name}

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
