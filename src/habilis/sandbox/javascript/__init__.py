"""JavaScript in WebAssembly: QuickJS, without files, network or clock of its own."""
