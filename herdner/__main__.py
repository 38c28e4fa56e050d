"""``python -m herdner``: the command line."""

from herdner.cli import main

main()
