"""What a model says beside its code, while it still writes."""

import re

from habilis.agent.parsing.replies import parse_reply

_SIGN = re.compile(
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
"""The start of a line, or of a tag: what follows will tell."""


class Prose:
    """Takes a reply bit by bit and lets through what is prose for certain.

    From the first sign of code on everything is held back, because only the whole reply tells what it is: code is shown
    when it runs, and an example inside an answer belongs to the answer.
    """

    def __init__(self) -> None:
        self._held = '\n'  # a reply begins as a line does
        self.shown = ''
        """What was let through."""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        self._held += text
        stop = _SIGN.search(self._held) or _UNDECIDED.search(self._held)
        return self._let(stop.start() if stop else len(self._held))

    def finish(self) -> str:
        """The rest of the prose, now that the reply is complete."""
        parsed = parse_reply(self._held)
        if parsed.code is not None or parsed.calls:
            self._held = parsed.prose
        return self._let(len(self._held))

    def _let(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        if not self.shown:
            text = text.lstrip('\n')
        self.shown += text
        return text
