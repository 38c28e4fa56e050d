"""Allocations that fail: the caller gets an error, and the same objects work afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest
from data import ELSEWHERE

PROGRAM = """
import _testcapi
import numpy as np
from herdner._ext.feature_tables import FeatureWeights
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import Lexicon

CHUNK = 1024  # words that the extractor gets memory for at once
tokens, offsets = ["Ada", "met", "Bob"], np.array([0, 3])
plan, lexicon = default_plan(()), Lexicon()
known = np.unique(make_extractor(plan, lexicon).keys(tokens, offsets)[1])
n = len(known)
weights = FeatureWeights(known, np.arange(n + 1), np.arange(n) % 2, np.random.default_rng(1).normal(size=n), 2)
others = [f"x{i}" for i in range(CHUNK - 2)]  # two more words are the borders of sentences
expected = make_extractor(plan, lexicon, weights).scores(tokens, offsets)
n_errors = 0
for k in range(1, 60):  # which allocation of memory fails
    extractor = make_extractor(plan, lexicon, weights)
    extractor.scores(others, np.array([0, len(others)]))  # so that the next word needs memory
    try:
        _testcapi.set_nomemory(k, k + 1)
        try:
            extractor.scores(tokens, offsets)
        finally:
            _testcapi.remove_mem_hooks()
    except MemoryError:
        n_errors += 1
    assert np.array_equal(extractor.scores(tokens, offsets), expected)
print(n_errors > 5)
"""


def test_words_that_found_no_memory_are_described_the_next_time():
    pytest.importorskip("_testcapi", reason="needs the allocators that CPython's own tests let fail")
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ELSEWHERE)
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr
