"""`habilis tools`: list, search, show, test, run, change and share the tools of a library."""
