"""JavaScript tools: read from their source, and run in QuickJS inside WebAssembly."""
