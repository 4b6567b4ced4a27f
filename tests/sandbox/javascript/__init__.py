"""QuickJS in WebAssembly."""
