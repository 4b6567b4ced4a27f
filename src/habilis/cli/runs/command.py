"""All commands of `habilis runs`. What they need of Habilis is imported when they run."""

from habilis.cli.runs import changing, going, keeping, looking
from habilis.cli.runs.options import app

__all__ = ['app', 'changing', 'going', 'keeping', 'looking']
