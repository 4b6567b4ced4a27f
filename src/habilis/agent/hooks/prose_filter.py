"""Separates the prose of a reply from its code while the reply is streamed."""

import re

from habilis.agent.parsing.replies import parse_reply

_CODE_START = re.compile(
    r"""
    \n [ \t>]* (?: `{3} | ~{3} | \{ | >>> | In\ \[ )                                  # a fence, JSON, a session
    | (?i: < (?: code | python | execute | py | tool_code | run_python | function | \|python_tag | tool_call
               | think | thought | reasoning ))                                       # a tag
    | \n (?: (?: import | from | def | async | class | for | while | with | if | try ) \ ?[\w:]
           | @\w | \w+\( | \w+\ ?=\ ?\S )                                             # bare code
    """,
    re.VERBOSE,
)
_UNDECIDED = re.compile(r'(?:\n[ \t>]*\S{0,40}[ \t]*=?[ \t]*|<[^>\s]{0,20})\Z')
"""The start of a line or tag that may turn out to be code."""


class ProseFilter:
    """Takes a streamed reply and returns the parts that are certainly prose.

    From the first possible code on, the rest is held back until the reply is complete and can be parsed: code is shown
    when it runs, but an example inside an answer is part of the answer.
    """

    def __init__(self) -> None:
        self._held = '\n'  # the start of a reply is the start of a line
        self.shown = ''
        """The prose returned so far."""

    def feed(self, text: str) -> str:
        """The prose that can be shown now."""
        self._held += text
        stop = _CODE_START.search(self._held) or _UNDECIDED.search(self._held)
        return self._release(stop.start() if stop else len(self._held))

    def finish(self) -> str:
        """The rest of the prose of a complete reply."""
        parsed = parse_reply(self._held)
        if parsed.code is not None or parsed.calls:
            self._held = parsed.prose
        return self._release(len(self._held))

    def _release(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        if not self.shown:
            text = text.lstrip('\n')
        self.shown += text
        return text
