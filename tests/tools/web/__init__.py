"""Tests of the web tools, and the loopback web that they use."""
