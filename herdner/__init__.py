"""herdner: names tagged consistently across a document, fast, on a CPU."""

__version__ = "0.1.0"
