"""Parses a reply: code to run, functions to call, or prose.

Models write code in fences of any kind, in tags, as JSON, or without marks; with prose around it, in several blocks, or
truncated. Parsing removes this framing and never changes the program: what runs is what the model wrote.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from habilis.agent.parsing.blocks import NO_LABEL, Block, find_blocks
from habilis.agent.parsing.json_calls import TextCall, parse_call_json, parse_call_tag
from habilis.agent.parsing.syntax import is_code, is_obvious_code, is_placeholder, unframe
from habilis.agent.parsing.unfenced import find_unfenced_code
from habilis.models.contract import FunctionCall

_OUTPUT_BEFORE = re.compile(
    r'\b(?:output|result|observation|stdout|print|printed|return|produce|show|display)s?\b[^\n]{0,40}:[*_ \t]*\Z',
    re.IGNORECASE,
)
_INVENTED_OUTPUT = re.compile(
    r'^[#*_> \t]*(?:execution |expected |code |the )?(?:output|result|observation|stdout)s?\b[^\n:]{0,40}:[*_]*\s*\S',
    re.IGNORECASE | re.MULTILINE,
)
_CHARS_BEFORE = 200
_MAX_INCOMPLETE_LINES = 10
"""Maximum number of lines at the end of a truncated block that are ignored to see whether it is Python."""

Form = Literal['fence', 'tag', 'json', 'bare', 'none']


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """The parts of a reply."""

    code: str | None = None
    """The Python to run; None if there is none."""

    prose: str = ''
    """The text beside the code."""

    calls: tuple[FunctionCall, ...] = ()
    """Function calls in the text, for models without native function calls."""

    form: Form = 'none'
    truncated: bool = False
    """Whether the reply ends inside its code."""

    is_partial: bool = False
    """Whether there is more code that is not run, after output that the model invented."""


def parse_reply(text: str) -> Parsed:
    """Parse a reply. Any text is a valid reply."""
    text = text.replace('\r\n', '\n')
    blocks = list(find_blocks(text))
    found = (
        _from_marked(text, blocks)
        or _from_calls(text, blocks)
        or _from_unlabelled(text, blocks)
        or _from_unopened_fence(text, blocks)
    )
    if found is not None:
        return found
    prose = _without(text, [block for block in blocks if block.kind == 'thought' or _is_empty_code(block)])
    return _from_json(prose, blocks) or _from_unfenced(prose, blocks) or Parsed(prose=prose)


def parse_words(text: str) -> Parsed:
    """Parse a reply where Python cannot be run: code is part of the prose."""
    parsed = parse_reply(text)
    if parsed.code is None:
        return parsed
    text = text.replace('\r\n', '\n')
    return Parsed(prose=_without(text, [block for block in find_blocks(text) if block.kind == 'thought']))


def code_is_complete(text: str) -> bool:
    """Whether a reply that is still streaming contains a complete block of Python."""
    if text.count('```') + text.count('~~~') < 2:  # called at each line, so fast if there is no complete fence
        return False
    return _first_complete(text.replace('\r\n', '\n')) is not None


def through_code(text: str) -> str:
    """A reply up to the end of its first complete block of Python; all of it if there is none."""
    text = text.replace('\r\n', '\n')
    block = _first_complete(text)
    return text if block is None else text[: block.end]


def _first_complete(text: str) -> Block | None:
    for block in find_blocks(text):
        if not block.is_final:
            return None
        if block.kind == 'fence' and block.is_python and block.is_closed and not _is_empty_code(block):
            return block
    return None


# Blocks ---------------------------------------------------------------------------------------------------------------


def _from_marked(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """Blocks marked as Python, up to the first output that the model invented."""
    marked = [block for block in blocks if block.is_python and not _is_empty_code(block)]
    chosen: list[Block] = []
    for block in marked:
        if chosen and _INVENTED_OUTPUT.search(text, chosen[-1].end, block.start):
            break
        chosen.append(block)
    parsed = _parsed_blocks(text, chosen, blocks)
    return replace(parsed, is_partial=True) if parsed and len(chosen) < len(marked) else parsed


def _from_unlabelled(text: str, blocks: Sequence[Block]) -> Parsed | None:
    chosen = [block for block in blocks if block.kind == 'fence' and block.label == NO_LABEL]
    return _parsed_blocks(text, [block for block in chosen if _is_unlabelled_code(text, block)], blocks)


def _is_unlabelled_code(text: str, block: Block) -> bool:
    """Whether a fence without a label holds code, not output, a table or configuration."""
    if _OUTPUT_BEFORE.search(text[max(0, block.start - _CHARS_BEFORE) : block.start].rstrip()):
        return False
    code = unframe(block.body)
    if block.is_closed or is_code(code):
        return is_code(code)
    for _ in range(_MAX_INCOMPLETE_LINES):
        code = code.rpartition('\n')[0]
        if is_code(code):
            return True
    return False


def _parsed_blocks(text: str, chosen: Sequence[Block], blocks: Sequence[Block]) -> Parsed | None:
    if not chosen:
        return None
    return Parsed(
        code='\n\n'.join(unframe(block.body) for block in chosen),
        prose=_without(text, blocks),
        form='tag' if chosen[0].kind == 'tag' else 'fence',
        truncated=not chosen[-1].is_closed,
    )


def _from_unopened_fence(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """Code at the start of a reply that has a closing fence, but no opening one."""
    fences = [block for block in blocks if block.kind == 'fence']
    if len(fences) != 1 or fences[0].label != NO_LABEL or fences[0].is_closed:
        return None
    code = unframe(text[: fences[0].start])
    return Parsed(code=code, prose=fences[0].body.strip(), form='bare') if is_obvious_code(code) else None


def _is_empty_code(block: Block) -> bool:
    """Whether a block of code is empty, or only has the `...` of the instructions."""
    may_be_code = block.is_python or (block.kind == 'fence' and block.label == NO_LABEL)
    return may_be_code and is_placeholder(unframe(block.body))


def _without(text: str, blocks: Sequence[Block]) -> str:
    parts: list[str] = []
    position = 0
    for block in blocks:
        if block.kind != 'typography':
            parts.append(text[position : block.start])
            position = block.end
    parts.append(text[position:])
    return '\n'.join(part.strip() for part in parts if part.strip())


# Calls, JSON, code without marks --------------------------------------------------------------------------------------


def _from_calls(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """Calls in tags. If all of them run Python, their code is the code of the reply."""
    calls = [call for block in blocks if block.kind == 'call' and (call := parse_call_tag(block.label, block.body))]
    truncated = bool(calls) and any(block.kind == 'call' and not block.is_closed for block in blocks)
    return _parsed_calls(calls, _without(text, blocks), truncated)


def _from_json(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """A call in JSON that is the whole reply, is in a fence, or follows prose."""
    for block in blocks:
        may_be_json = block.kind == 'fence' and block.label in ('json', 'tool_call', NO_LABEL)
        if may_be_json and (found := parse_call_json(block.body)):
            return _parsed_calls([found], '', found.is_truncated)
    return _parsed_calls([found], '', found.is_truncated) if (found := parse_call_json(text)) else None


def _parsed_calls(calls: Sequence[TextCall], prose: str, truncated: bool) -> Parsed | None:
    if not calls:
        return None
    code = [call.code for call in calls if call.code is not None]
    if len(code) == len(calls):
        return Parsed(code='\n\n'.join(map(unframe, code)), prose=prose, form='json', truncated=truncated)
    functions = [
        FunctionCall(id=f'text-{number}', name=call.name, arguments=call.arguments) for number, call in enumerate(calls)
    ]
    return Parsed(calls=tuple(functions), prose=prose, form='tag')


def _from_unfenced(text: str, blocks: Sequence[Block]) -> Parsed | None:
    if any(block.kind == 'fence' for block in blocks):
        return None
    found = find_unfenced_code(text)
    return Parsed(code=found.code, prose=found.prose, form='bare') if found else None
