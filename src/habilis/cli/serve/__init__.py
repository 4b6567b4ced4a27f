"""`habilis serve`: services of this machine for people and programs."""

from habilis.cli.serve.command import app

__all__ = ['app']
