"""Palindromes."""

import unicodedata


def is_palindrome(text: str) -> bool:
    """Whether a text is a palindrome: reads the same backwards and forwards.

    Only letters and digits count; spaces, punctuation and case do not matter. A text without any is a palindrome.
    """
    folded = unicodedata.normalize('NFC', text.casefold())
    letters = [char for char in folded if char.isalnum()]
    return letters == letters[::-1]
