"""E-mail addresses in a text."""

import re

# Every repetition has a limit, so that no text takes long.
_EMAIL = re.compile(
    r"""
    (?<![\w%+-]) [\w%+-] (?: [\w%+-] | \.(?![.@]) ){0,63}
    @ (?: [a-z0-9] (?: [a-z0-9-]{0,61} [a-z0-9] )? \. ){1,126}
    [a-z]{2,63} (?!\w)
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def extract_emails(text: str) -> list[str]:
    """E-mail addresses found in a text, in their order, each once.

    Addresses that differ in upper and lower case only are the same; the first is kept as it is written.
    """
    found = dict[str, str]()
    for email in _EMAIL.findall(text):
        found.setdefault(email.lower(), email)
    return list(found.values())
