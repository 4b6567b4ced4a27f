"""`python -m habilis`: the same as the `habilis` command."""

from habilis.cli.main import main

main()
