"""Searches texts with a regular expression, in a process of its own that can be killed and whose memory is limited.

A regular expression can take years, and holds the interpreter lock meanwhile. This file is run as a script, so it
imports nothing of Habilis. It reads a line of JSON, `[pattern, ignore_case, most, memory]`, and answers with a line,
empty or the error. Then, for each text: a line with its length in bytes, and the text. It answers with a line of JSON:
the number of lines that match, and the first `most` of them, from 1; or with an error.
"""

import codecs
import contextlib
import io
import json
import re
import sys
import warnings


def main() -> None:
    """Answer until the input ends."""
    texts, replies = sys.stdin.buffer, sys.stdout.buffer
    pattern, ignore_case, most, memory = json.loads(texts.readline())
    _limit_memory(memory)
    warnings.simplefilter('error', FutureWarning)  # such as [[:alpha:]], which means something else in Python
    try:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        reply: object = ''
    except (re.error, RecursionError, OverflowError, FutureWarning) as raised:
        expression, reply = re.compile(''), str(raised)
    except MemoryError:
        expression, reply = re.compile(''), 'it needs too much memory'
    while True:
        replies.write(f'{json.dumps(reply)}\n'.encode())
        replies.flush()
        length = texts.readline()
        if not length:
            return
        try:
            reply = _matches(expression, texts.read(int(length)), most)
        except MemoryError:
            reply = 'too much memory'


def _matches(expression: 're.Pattern[str]', text: bytes, most: int) -> tuple[int, list[int]]:
    count, first = 0, list[int]()
    lines = io.BytesIO(text.removeprefix(codecs.BOM_UTF8))  # not all of them at once: there may be millions
    for number, line in enumerate(lines, 1):
        if expression.search(line.rstrip(b'\n').decode('utf-8', 'replace')):
            count += 1
            if count <= most:
                first.append(number)
    return count, first


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


if __name__ == '__main__':
    main()
