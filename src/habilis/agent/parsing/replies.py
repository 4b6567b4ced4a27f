"""From what a model wrote to what it wants: code to run, functions to call, or an answer.

Models write code in fences of any kind, in tags, as JSON, or bare; with prose around it, in several blocks, or cut off
at the end. What is clearly code is found whatever the wrapping; what is clearly prose is left alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from habilis.agent.parsing.blocks import NO_LABEL, Block, find_blocks
from habilis.agent.parsing.json_calls import Wanted, wanted_in_call, wanted_in_text
from habilis.agent.parsing.syntax import acts, clean, is_placeholder, reads_as_code
from habilis.agent.parsing.unfenced import find_bare_code
from habilis.models.contract import FunctionCall

_OUTPUT_BEFORE = re.compile(
    r'\b(?:output|result|observation|stdout|print|printed|return|produce|show|display)s?\b[^\n]{0,40}:[*_ \t]*\Z',
    re.IGNORECASE,
)
_INVENTED = re.compile(
    r'^[#*_> \t]*(?:execution |expected |code |the )?(?:output|result|observation|stdout)s?\b[^\n:]{0,40}:[*_]*\s*\S',
    re.IGNORECASE | re.MULTILINE,
)
_LOOKED_BACK = 200
_HALF_DONE = 10
"""Lines at the end of a block that was cut off which may keep it from being Python."""

Form = Literal['fence', 'tag', 'json', 'bare', 'none']


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a reply contains."""

    code: str | None = None
    """All its Python, ready to run; None if there is none."""

    prose: str = ''
    """What it says beside the code."""

    calls: tuple[FunctionCall, ...] = ()
    """Functions asked for in the text, where the provider has no calls of its own."""

    form: Form = 'none'
    truncated: bool = False
    """The reply ends inside its code."""


def parse_reply(text: str) -> Parsed:
    """Find the code of a reply. Any text is a valid reply."""
    text = text.replace('\r\n', '\n')
    blocks = list(find_blocks(text))
    found = (
        _from_marked(text, blocks)
        or _from_calls(text, blocks)
        or _from_unlabelled(text, blocks)
        or _from_end_alone(text, blocks)
    )
    if found is not None:
        return found
    prose = _without(text, [block for block in blocks if block.kind == 'thought' or _is_empty_code(block)])
    return _from_json(prose, blocks) or _from_bare(prose, blocks) or Parsed(prose=prose)


def parse_words(text: str) -> Parsed:
    """The same where there is no Python to run: code is part of what a reply says."""
    parsed = parse_reply(text)
    if parsed.code is None:
        return parsed
    text = text.replace('\r\n', '\n')
    return Parsed(prose=_without(text, [block for block in find_blocks(text) if block.kind == 'thought']))


def code_is_complete(text: str) -> bool:
    """Whether a reply that is still being written has come to the end of its first block of Python."""
    if text.count('```') + text.count('~~~') < 2:  # an end needs a beginning; asked at each line, so quick to say no
        return False
    for block in find_blocks(text.replace('\r\n', '\n')):
        if not block.certain:
            return False
        if block.kind == 'fence' and block.python and block.closed and not _is_empty_code(block):
            return True
    return False


# Blocks ---------------------------------------------------------------------------------------------------------------


def _from_marked(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """Blocks that say they are Python, up to the first output that the model made up."""
    chosen: list[Block] = []
    for block in blocks:
        if not block.python or _is_empty_code(block):
            continue
        if chosen and _INVENTED.search(text, chosen[-1].end, block.start):
            break
        chosen.append(block)
    return _joined(text, chosen, blocks)


def _from_unlabelled(text: str, blocks: Sequence[Block]) -> Parsed | None:
    chosen = [block for block in blocks if block.kind == 'fence' and block.label == NO_LABEL]
    return _joined(text, [block for block in chosen if _is_unlabelled_code(text, block)], blocks)


def _is_unlabelled_code(text: str, block: Block) -> bool:
    """A bare fence also holds output, tables and configuration: it is code if it reads as code."""
    if _OUTPUT_BEFORE.search(text[max(0, block.start - _LOOKED_BACK) : block.start].rstrip()):
        return False
    code = clean(block.body)
    if block.closed or reads_as_code(code):
        return reads_as_code(code)
    for _ in range(_HALF_DONE):
        code = code.rpartition('\n')[0]
        if reads_as_code(code):
            return True
    return False


def _joined(text: str, chosen: Sequence[Block], blocks: Sequence[Block]) -> Parsed | None:
    if not chosen:
        return None
    return Parsed(
        code='\n\n'.join(clean(block.body) for block in chosen),
        prose=_without(text, blocks),
        form='tag' if chosen[0].kind == 'tag' else 'fence',
        truncated=not chosen[-1].closed,
    )


def _from_end_alone(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """Code that begins the reply without a fence, and ends with one."""
    fences = [block for block in blocks if block.kind == 'fence']
    if len(fences) != 1 or fences[0].label != NO_LABEL or fences[0].closed:
        return None
    code = clean(text[: fences[0].start])
    return Parsed(code=code, prose=fences[0].body.strip(), form='bare') if acts(code) else None


def _is_empty_code(block: Block) -> bool:
    """Nothing, or the `...` that stands for it in the instructions."""
    return (block.python or (block.kind == 'fence' and block.label == NO_LABEL)) and is_placeholder(clean(block.body))


def _without(text: str, blocks: Sequence[Block]) -> str:
    pieces: list[str] = []
    position = 0
    for block in blocks:
        if block.kind != 'plain':
            pieces.append(text[position : block.start])
            position = block.end
    pieces.append(text[position:])
    return '\n'.join(piece.strip() for piece in pieces if piece.strip())


# Calls and JSON, bare code --------------------------------------------------------------------------------------------


def _from_calls(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """Calls in tags. If all of them are to run Python, their code is the code."""
    wanted = [found for block in blocks if block.kind == 'call' and (found := wanted_in_call(block.label, block.body))]
    truncated = bool(wanted) and any(block.kind == 'call' and not block.closed for block in blocks)
    return _wanted(wanted, _without(text, blocks), truncated)


def _from_json(text: str, blocks: Sequence[Block]) -> Parsed | None:
    """JSON that is the whole reply, is in a fence, or follows some words."""
    for block in blocks:
        in_json = block.kind == 'fence' and block.label in ('json', 'tool_call', NO_LABEL)
        if in_json and (found := wanted_in_text(block.body)):
            return _wanted([found], '', found.cut)
    return _wanted([found], '', found.cut) if (found := wanted_in_text(text)) else None


def _wanted(wanted: Sequence[Wanted], prose: str, truncated: bool) -> Parsed | None:
    if not wanted:
        return None
    code = [one.code for one in wanted if one.code is not None]
    if len(code) == len(wanted):
        return Parsed(code='\n\n'.join(map(clean, code)), prose=prose, form='json', truncated=truncated)
    calls = [
        FunctionCall(id=f'text-{number}', name=one.name, arguments=one.arguments) for number, one in enumerate(wanted)
    ]
    return Parsed(calls=tuple(calls), prose=prose, form='tag')


def _from_bare(text: str, blocks: Sequence[Block]) -> Parsed | None:
    if any(block.kind == 'fence' for block in blocks):
        return None
    found = find_bare_code(text)
    return Parsed(code=found.code, prose=found.prose, form='bare') if found else None
