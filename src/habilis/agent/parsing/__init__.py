"""From a reply to what is in it: code, calls, words."""
