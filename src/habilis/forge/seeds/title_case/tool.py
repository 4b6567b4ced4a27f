"""Capital letters of titles."""

import re

_SMALL = set('a an and as at but by for from in nor of on or per the to via vs with'.split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def title_case(text: str) -> str:
    """Title with the capital letters of English headlines: "the lord of the rings" becomes "The Lord of the Rings".

    Small words stay small, except at the beginning and the end. Words with capitals inside, like NASA and iPhone, are
    kept; a text all in capitals is written anew.
    """
    plain = text.lower() if text.isupper() else text
    words = [match.start() for match in _WORD.finditer(plain)]

    def written(match: re.Match[str]) -> str:
        word = match[0]
        if word[1:] != word[1:].lower():
            return word
        if word.lower() in _SMALL and match.start() not in (words[0], words[-1]):
            return word.lower()
        return word[0].title() + word[1:]

    return _WORD.sub(written, plain)
