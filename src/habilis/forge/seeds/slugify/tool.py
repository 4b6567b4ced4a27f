"""Text for addresses and file names."""

import re
import unicodedata

_LETTERS = str.maketrans({'æ': 'ae', 'œ': 'oe', 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ð': 'd', 'þ': 'th', "'": '', '’': ''})
_ACCENTS = re.compile('(?<=[a-z])[\u0300-\u036f]+')


def slugify(text: str, separator: str = '-') -> str:
    """Slug of a text for a URL or a file name: "Crème Brûlée, please!" becomes "creme-brulee-please".

    Lower case, without accents on Latin letters, with a separator between words. Letters of other scripts are kept.
    """
    folded = unicodedata.normalize('NFD', text.casefold()).translate(_LETTERS)
    plain = unicodedata.normalize('NFC', _ACCENTS.sub('', folded))
    kept = ''.join(char if unicodedata.category(char)[0] in 'LMN' else ' ' for char in plain)
    return separator.join(kept.split())
