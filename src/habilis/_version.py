"""The version of Habilis: the one place that states it. The build reads it too."""

__version__ = '0.1.0'
