"""Engineering tools: tests first, verified in the sandbox, kept with their versions."""
