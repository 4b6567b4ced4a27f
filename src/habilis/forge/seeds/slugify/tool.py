"""Text for addresses and file names."""

import unicodedata

_LETTERS = str.maketrans({'æ': 'ae', 'œ': 'oe', 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ð': 'd', 'þ': 'th', "'": '', '’': ''})


def slugify(text: str, separator: str = '-') -> str:
    """Slug of a text for a URL or a file name: "Crème Brûlée, please!" becomes "creme-brulee-please".

    Lower case, without accents on Latin letters, with a separator between words. Letters of other scripts are kept.
    """
    folded = unicodedata.normalize('NFC', text).casefold().translate(_LETTERS)
    kept = ''.join(_plain(char) if unicodedata.category(char)[0] in 'LMN' else ' ' for char in folded)
    return separator.join(kept.split())


def _plain(char: str) -> str:
    """The letter without its accents, if it is Latin."""
    base = unicodedata.normalize('NFD', char)[0]
    return base if base.isascii() else char
