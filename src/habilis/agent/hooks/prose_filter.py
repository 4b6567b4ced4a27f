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
        self.held = '\n'  # the start of a reply is the start of a line
        """The end of the reply so far, which may be code."""

        self.shown = ''
        """The prose returned so far."""

    def feed(self, text: str) -> str:
        """The prose that can be shown now."""
        self.held += text
        stop = _CODE_START.search(self.held) or _UNDECIDED.search(self.held)
        return self._release(stop.start() if stop else len(self.held))

    def finish(self) -> str:
        """The rest of the prose of a complete reply."""
        parsed = parse_reply(self.held)
        if parsed.code is not None or parsed.calls:
            self.held = parsed.prose
        return self._release(len(self.held))

    def skip_held(self) -> None:
        """Continue after code that ends a line."""
        self.held = '\n'

    def _release(self, end: int) -> str:
        text, self.held = self.held[:end], self.held[end:]
        if not self.shown:
            text = text.lstrip('\n')
        self.shown += text
        return text
