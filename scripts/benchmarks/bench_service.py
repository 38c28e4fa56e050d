"""Seconds of each backend, from which `herdner serve` estimates the cost of requests.

``python scripts/benchmarks/bench_service.py`` prints a row for each backend: the processor seconds for a text of 10,000
characters that consists of linked names, and the seconds that are assumed in ``herdner.integrations.serve.costs``.
"""

from __future__ import annotations

import time

import herdner
from herdner.inference.registry import BACKENDS
from herdner.integrations.serve.costs import SECONDS

TEXTS = ("Ada Lovelace met Bob Babbage in Rome. " * 264)[:10_000], ("Kenya " * 1667)[:10_000]


def measure(tagger: herdner.Tagger, backend: str) -> float:
    """Return the processor seconds of the slower of two texts, or 0 if the backend refuses both texts.

    Args:
        tagger: The tagger.
        backend: Name of the backend.
    """
    slowest = 0.0
    for text in TEXTS:
        began = time.process_time()
        try:
            tagger.tag(text, tagger.inference(backend=backend, links=backend != "viterbi"))
        except ValueError:  # exact inference refuses graphs that would take too long
            continue
        slowest = max(slowest, time.process_time() - began)
    return slowest


def main() -> None:
    """Print a table with the measured and the assumed seconds of each backend."""
    tagger = herdner.load("en")
    tagger.tag(TEXTS[0][:100])
    print(f"{'backend':<20}{'measured':>10}{'estimate':>10}")
    for backend in BACKENDS:
        print(f"{backend:<20}{measure(tagger, backend):>10.3f}{SECONDS[backend]:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
