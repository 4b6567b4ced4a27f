"""The examples of a documentation page: what is run, in which order, and what must come out.

- A `python` block runs. A `text` or `output` block directly after it is what it prints; `...` stands for anything.
- In a `console` block, the lines that start with `$ habilis` or `$ python` run, and must exit with 0.
- A `python model` or `console model` block needs a real model. It runs only if `run` is given one; otherwise it is
  only checked that the Python compiles.
- `<!-- not run: the reason -->` before a block leaves it out. `<!-- exit: 2 -->` before a `console` block
  with one command says that the command exits with 2.
- `<!-- file: shop.py -->` before a block of any language: the block is the file of that name, for what comes after it.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from tests.cli import from_nursery
from tests.cli.nursery import NURSERY
from tests.cli.process import environment
from tests.house import page_runner

SECONDS = 600
"""How long one page may take: the first use of a sandbox builds it."""

_FENCE = re.compile(r'(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)(?P<rest>[^`]*)')
_COMMENT = re.compile(r'\s*<!--\s*(?P<text>.*?)\s*-->\s*')
_NOT_RUN = re.compile(r'not run\b:?\s*(?P<reason>.*)')
_EXIT = re.compile(r'exit:\s*(?P<code>\d+)')
_FILE = re.compile(r'file:\s*(?P<name>.*)')
_FILE_NAME = re.compile(r'[\w-]+(\.[\w-]+)*')
_MISSPELT = frozenset({'Python', 'py', 'py3', 'pycon', 'python3'})


class PageError(ValueError):
    """The page breaks a rule of this module. The message names the file and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block, as it is in the page."""

    language: str
    text: str
    line: int
    """Where the fence opens, counted from 1."""
    last: int
    """Where the fence closes."""
    needs_model: bool = False
    """The word `model` stands behind the language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A block of Python to run."""

    code: str
    line: int
    output: str | None
    """What it must print, or None where the page does not say."""
    needs_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that the steps after it find in their folder."""

    file: str
    text: str
    line: int
    needs_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to run."""

    command: str
    line: int
    exit_code: int
    needs_model: bool = False


def steps(page: Path) -> list[Example | Command | File]:
    """All that is run of a page, in order."""
    lines = page.read_text(encoding='utf-8').splitlines()
    try:
        return list(_steps(lines))
    except PageError as error:
        msg = f'{page.name}:{error}'
        raise PageError(msg) from None


def needs_model(page: Path) -> bool:
    """Whether a part of the page runs only with a model."""
    return any(step.needs_model for step in steps(page))


def run(page: Path, folder: Path, *, model: str | None = None) -> str | None:
    """Run all that a page shows, in a process of its own and an empty folder; return what is wrong with it, or None.

    `model` is the one that the parts which need a model find as their default.
    """
    job = folder / 'steps.json'
    todo = {'page': str(page), 'with_model': model is not None, 'steps': [asdict(step) for step in steps(page)]}
    if model is None:
        todo['commands'] = str(_commands_from_nursery(folder / 'commands'))
    job.write_text(json.dumps(todo), encoding='utf-8')
    empty = folder / 'empty'
    empty.mkdir()
    if model is None:
        started = NURSERY.run(
            [str(job)], b'', environment(), seconds=SECONDS, folder=empty, program=page_runner.__file__
        )
        if started is not None:
            return (started.stdout + started.stderr).decode() if started.returncode else None
    child = subprocess.run(
        [sys.executable, '-P', '-W', 'error', page_runner.__file__, job],
        cwd=empty,
        env=os.environ | ({'HABILIS_MODEL': model} if model else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return f'{child.stdout}{child.stderr}' if child.returncode else None


def _commands_from_nursery(folder: Path) -> Path:
    """A folder with a `habilis` that starts in milliseconds."""
    folder.mkdir()
    start = shlex.join([sys.executable, '-IS', from_nursery.__file__, NURSERY.path(environment())])
    file = folder / 'habilis'
    file.write_text(f'#!/bin/sh\nexec {start} "$@"\n', encoding='utf-8')
    file.chmod(0o755)
    return folder


def _steps(lines: list[str]) -> Iterator[Example | Command | File]:
    found = list(blocks(lines))
    for block, following in zip_longest(found, found[1:]):
        comments = _comments_before(lines, block)
        if block.language in _MISSPELT:
            msg = f'{block.line}: write `python` for {block.language!r}, or the block is never run'
            raise PageError(msg)
        if _is_left_out(comments, block):
            continue
        if name := _file_name(comments, block):
            yield File(file=name, text=block.text + '\n', line=block.line, needs_model=block.needs_model)
        elif block.language == 'python':
            output = _output(lines, block, following)
            yield Example(code=block.text, line=block.line, output=output, needs_model=block.needs_model)
        elif block.language == 'console':
            yield from _commands(block, _exit_code(comments))


def blocks(lines: list[str]) -> Iterator[Block]:
    """The fenced blocks of a page, without the indentation of the list or tab that they are in."""
    numbered = iter(enumerate(lines, 1))
    for line, text in numbered:
        opening = _FENCE.fullmatch(text)
        if opening is None:
            continue
        indent, fence = len(opening['indent']), opening['fence']
        body: list[str] = []
        for last, inner in numbered:
            if _closes(inner, fence):
                yield Block(
                    language=opening['language'],
                    text='\n'.join(body),
                    line=line,
                    last=last,
                    needs_model='model' in opening['rest'].split(),
                )
                break
            body.append(inner[min(indent, len(inner) - len(inner.lstrip(' '))) :])
        else:
            msg = f'{line}: this block is never closed'
            raise PageError(msg)


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]}


def _comments_before(lines: list[str], block: Block) -> list[str]:
    """The HTML comments that stand directly before a block."""
    comments: list[str] = []
    for line in reversed(lines[: block.line - 1]):
        if comment := _COMMENT.fullmatch(line):
            comments.append(comment['text'])
        elif line.strip():
            break
    return comments


def _is_left_out(comments: list[str], block: Block) -> bool:
    marks = [mark for comment in comments if (mark := _NOT_RUN.fullmatch(comment))]
    if not all(mark['reason'] for mark in marks):
        msg = f'{block.line}: say why this block is not run: <!-- not run: the reason -->'
        raise PageError(msg)
    return bool(marks)


def _exit_code(comments: list[str]) -> int | None:
    codes = [int(mark['code']) for comment in comments if (mark := _EXIT.fullmatch(comment))]
    return codes[0] if codes else None


def _file_name(comments: list[str], block: Block) -> str | None:
    names = [mark['name'] for comment in comments if (mark := _FILE.fullmatch(comment))]
    if not all(map(_FILE_NAME.fullmatch, names)):
        msg = f'{block.line}: a file is named by letters, digits, - and . alone: <!-- file: shop.py -->'
        raise PageError(msg)
    return names[0] if names else None


def _output(lines: list[str], block: Block, following: Block | None) -> str | None:
    if following is None or following.language not in {'output', 'text'}:
        return None
    between = lines[block.last : following.line - 1]
    return None if any(line.strip() for line in between) else following.text


def _commands(block: Block, exit_code: int | None) -> Iterator[Command]:
    found = [
        Command(
            command=match['command'].replace('\\\n', ''),
            line=block.line + 1 + block.text.count('\n', 0, match.start()),
            exit_code=exit_code or 0,
            needs_model=block.needs_model,
        )
        for match in re.finditer(r'^\$ (?P<command>(?:habilis|python)\b(?:\\\n|.)*)$', block.text, re.MULTILINE)
    ]
    if exit_code is not None and len(found) != 1:
        msg = f'{block.line}: a block with an exit code holds one command to run, not {len(found)}'
        raise PageError(msg)
    yield from found
