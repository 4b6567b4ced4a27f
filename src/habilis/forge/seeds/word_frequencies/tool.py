"""Word counts of a text."""

import unicodedata
from collections import Counter


def word_frequencies(text: str) -> dict[str, int]:
    """How often each word occurs in a text (word count), the most frequent first.

    Upper and lower case are the same word. A word is made of letters, digits and apostrophes inside it.
    """
    plain = unicodedata.normalize('NFC', text).lower().replace('’', "'")
    kept = ''.join(char if char == "'" or _is_part_of_a_word(char) else ' ' for char in plain)
    words = (word.strip("'") for word in kept.split())
    return dict(Counter(word for word in words if word).most_common())


def _is_part_of_a_word(char: str) -> bool:
    """Letters, digits, and the marks that vowels are in many scripts."""
    return unicodedata.category(char)[0] in 'LMN'
