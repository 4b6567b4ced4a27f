"""CPython in WebAssembly: the default sandbox."""
