"""Flows with the names that the official conformance suite calls."""

from habilis import flow


@flow(name='test_simple_text')
async def simple_text() -> str:
    """Return a text."""
    return 'This is a simple text response for testing.'


@flow(name='test_error_handling')
async def error_handling() -> str:
    """Fail."""
    msg = 'This tool intentionally returns an error for testing'
    raise RuntimeError(msg)
