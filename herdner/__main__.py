"""``python -m herdner``, and the console script: the command line."""

from __future__ import annotations

from herdner.base.interrupts import end_at_once


def main() -> None:
    """Imports the command line, and runs it."""
    end_at_once()
    from herdner.cli import main as run

    run()


if __name__ == "__main__":
    main()
