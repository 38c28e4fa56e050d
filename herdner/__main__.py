"""Entry point of ``python -m herdner`` and of the console script."""

from __future__ import annotations

from herdner.base.interrupts import exit_on_interrupt


def main() -> None:
    """Import the command line and run it. Ctrl-C ends the process with one line even during the imports."""
    exit_on_interrupt()
    from herdner.cli import main as run

    run()


if __name__ == "__main__":
    main()
