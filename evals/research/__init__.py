"""Questions whose answers need two to four pages of a generated site."""
