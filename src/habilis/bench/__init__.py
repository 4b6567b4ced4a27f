"""Benchmarks of `habilis bench`: speed and memory of Habilis, next to installed alternatives."""
