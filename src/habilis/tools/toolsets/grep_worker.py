"""Searches texts with a regular expression, in a process of its own that can be killed.

A regular expression can take years, and holds the interpreter lock meanwhile. This file is run as a script, so it
imports nothing of Habilis. It reads a line of JSON, `[pattern, ignore_case]`, and answers with a line, empty or the
error. Then, for each text: a line with its length in bytes, and the text. It answers with the numbers of the lines that
match, from 1, in one line.
"""

import json
import re
import sys
import warnings


def main() -> None:
    """Answer until the input ends."""
    texts, replies = sys.stdin.buffer, sys.stdout.buffer
    pattern, ignore_case = json.loads(texts.readline())
    warnings.simplefilter('error', FutureWarning)  # such as [[:alpha:]], which means something else in Python
    try:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        error = ''
    except (re.error, RecursionError, OverflowError, FutureWarning) as raised:
        expression, error = re.compile(''), str(raised)
    replies.write(f'{json.dumps(error)}\n'.encode())
    replies.flush()
    while length := texts.readline():
        lines = texts.read(int(length)).decode('utf-8-sig', 'replace').split('\n')
        if not lines[-1]:
            lines.pop()
        found = [number for number, line in enumerate(lines, 1) if expression.search(line)]
        replies.write(f'{json.dumps(found)}\n'.encode())
        replies.flush()


if __name__ == '__main__':
    main()
