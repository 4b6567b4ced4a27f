"""The front matter of `SKILL.md`: lines of YAML between two lines `---`. Real pages are not always valid YAML."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from habilis.core.errors import SkillError
from habilis.core.narrowing import fields_in, is_dict

MARK = '---'
MAX_HEAD = 20_000
_PLAIN = re.compile(r'^([A-Za-z][\w-]*):[ \t]+([^\s\'"|>\[{#].*)$', re.MULTILINE)
"""A field whose text has no quotes."""


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """A page, read."""

    fields: Mapping[str, object]
    """Texts, and lists and dicts of them."""

    body: str
    text: str
    """The whole page, without a byte order mark and with `\\n` at the end of each line."""

    problems: tuple[str, ...] = ()
    """Why strict readers refuse it."""


def read_front_matter(raw: str) -> FrontMatter:
    """The fields and the body of a page. Raises `SkillError`, and nothing else."""
    text = raw.removeprefix('\ufeff').replace('\r\n', '\n').replace('\r', '\n').lstrip()
    lines = text.split('\n')
    marks = [number for number, line in enumerate(lines) if line.rstrip() == MARK]
    if len(marks) < 2 or marks[0] != 0:
        msg = 'SKILL.md must begin with front matter: lines of YAML between two lines ---'
        raise SkillError(msg)
    head, body = '\n'.join(lines[1 : marks[1]]), '\n'.join(lines[marks[1] + 1 :])
    if len(head) > MAX_HEAD:
        msg = f'its front matter has more than {MAX_HEAD:,} characters'
        raise SkillError(msg)
    fields, reason = _load(head)
    problems = [reason] if reason else []
    if fields is None:  # most often a colon in a text without quotes, which other readers accept
        fields, _ = _load(_PLAIN.sub(lambda found: f'{found[1]}: {json.dumps(found[2].strip())}', head))
    if fields is None:
        msg = f'its front matter is broken: {reason}'
        raise SkillError(msg)
    if not raw.startswith(MARK):
        problems.append('SKILL.md must begin with ---')
    if MARK in head:
        problems.append('--- is inside the front matter')
    return FrontMatter(fields=fields, body=body.strip(), text=text, problems=tuple(problems))


def _load(head: str) -> tuple[dict[str, object] | None, str]:
    """The fields, and what is wrong with the YAML; None if it cannot be read."""
    import yaml  # takes 10 ms, and most runs have no skills

    flow, linked = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken), (yaml.AnchorToken, yaml.AliasToken)
    try:
        tokens: list[object] = list(yaml.scan(head, Loader=yaml.BaseLoader))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        if any(isinstance(token, linked) for token in tokens):  # a few lines of them become gigabytes
            return None, 'it has anchors'
        loaded = yaml.load(head, Loader=yaml.BaseLoader)  # makes only texts, lists and dicts
    except Exception as error:  # of whatever kind: the page comes from a stranger
        mark = getattr(error, 'problem_mark', None)
        where = f' in line {mark.line + 2}' if mark is not None else ''
        return None, f'{getattr(error, "problem", None) or type(error).__name__}{where}'
    if not is_dict(loaded) or not all(isinstance(key, str) for key in loaded):
        return None, 'it must have a field and its value in each line'
    is_flow = any(isinstance(token, flow) for token in tokens)
    return fields_in(loaded), 'lists and dicts must be written in lines of their own' if is_flow else ''
