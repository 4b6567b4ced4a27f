"""Parses the replies of models: code, function calls, prose."""
