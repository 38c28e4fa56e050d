"""Estimates of the time that requests take, from measured times of the backends.

The pool of workers uses the estimates to leave workers and places in the queue to requests that are quick.
"""

from __future__ import annotations

from herdner.inference.registry import BACKENDS, make_backend
from herdner.ner.inference import DEFAULT_BACKEND

# Seconds that each backend takes for a text of 10,000 characters that consists of linked names, with the model `en`,
# the default number of sweeps, and one thread of a server of 2023. The numbers include a reserve, because texts of
# 100,000 characters take up to twice as long per character. Backends whose time has no bound have the largest number.
# `python scripts/benchmarks/bench_service.py` measures them.
SECONDS = {
    "annealed-gibbs": 0.2, "annealed-importance": 20.0, "auto": 20.0, "belief-propagation": 2.5, "blocked-gibbs": 0.9,
    "bounded-error": 0.8, "circular-dhg": 0.6, "dhg": 0.6, "dogs": 1.2, "exact": 20.0, "gibbs": 0.2,
    "herded-gibbs": 1.0, "icm": 0.03, "max-product": 0.07, "mean-field": 0.03, "mini-bucket": 3.0, "qmc-gibbs": 0.3,
    "rdhg": 0.6, "sum-product": 0.03, "tempered": 20.0, "tree-reweighted": 20.0, "viterbi": 0.02,
}  # fmt: skip
SLOWEST = max(SECONDS.values())
# Backends that run a number of rounds for each text: a text of 60 characters takes more than 10 seconds.
FIXED_SECONDS = {"annealed-importance": SLOWEST, "tempered": SLOWEST}
TEXT_SECONDS = 0.001  # tokenization, features and response for a short text
RESPONSE_SECONDS = 0.06  # writing the entities and links of 10,000 characters into the response, for each backend
FILE_SECONDS = 0.1  # writing a file of 10,000 characters in the slowest format
START_SECONDS = {"html": 0.5, "parquet": 0.5, "spacy": 0.5}  # formats that import a library when they are first used
N_LABELS = 3  # number of labels of the model `en`
# Pairs (cost, share): all requests that cost more than this take at most this share of the places in the queue.
QUEUE_PARTS = ((0.01, 0.875), (0.05, 0.75), (0.25, 0.5))
LONG_SECONDS = QUEUE_PARTS[-1][0]  # requests with a higher cost never occupy all workers


def tagging_seconds(n_characters: int, backend: str | None, n_sweeps: int | None, *, has_options: bool) -> float:
    """Estimate the time in seconds to tag a text with a backend and to build the response.

    Args:
        n_characters: Length of the text.
        backend: Name of the backend; None is the default of the model.
        n_sweeps: Number of sweeps of the request; None is the default.
        has_options: The request has other options, which may make each sweep slower.

    Returns:
        Seconds for a model with the labels of `en`.
    """
    seconds = SECONDS.get(backend or "sum-product", SLOWEST)
    if n_sweeps is not None and (backend is None or backend in BACKENDS):
        default_sweeps = getattr(make_backend(backend or DEFAULT_BACKEND), "n_sweeps", None)
        seconds *= 1.0 if default_sweeps is None else max(n_sweeps / default_sweeps, 0.1)
    per_character = (RESPONSE_SECONDS + seconds * (4.0 if has_options else 1.0)) / 10_000
    return FIXED_SECONDS.get(backend or "", 0.0) + n_characters * per_character


def file_seconds(n_characters: int, format: str) -> float:
    """Estimate the time in seconds to write a text with its entities as a file.

    Args:
        n_characters: Length of the text.
        format: Name of the format.

    Returns:
        Time in seconds.
    """
    return n_characters / 10_000 * FILE_SECONDS + START_SECONDS.get(format, 0.0)


def label_factor(n_labels: int) -> float:
    """Return the estimated run time of a model with ``n_labels`` labels, divided by the run time of the model `en`.

    Args:
        n_labels: Number of labels.
    """
    return max(n_labels / N_LABELS, 1.0) ** 2
