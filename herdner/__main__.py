"""``python -m herdner``, and the console script: the command line."""

from __future__ import annotations

from herdner.base.interrupts import exit_on_interrupt


def main() -> None:
    """Imports the command line, and runs it."""
    exit_on_interrupt()
    from herdner.cli import main as run

    run()


if __name__ == "__main__":
    main()
