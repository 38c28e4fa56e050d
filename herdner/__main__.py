"""Entry point of ``python -m herdner`` and of the console script."""

from __future__ import annotations

from herdner.base.interrupts import exit_on_interrupt


def main() -> None:
    """Import and run the command line. Even during the imports, Ctrl-C prints one line and ends the process."""
    exit_on_interrupt()
    from herdner.cli import main as run

    run()


if __name__ == "__main__":
    main()
