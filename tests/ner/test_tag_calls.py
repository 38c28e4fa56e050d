"""Number of Python functions and files between a call of `Tagger.tag` and its result."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import herdner

TEXT = "Ada Reyes met Bo Lim in Lima. Reyes left with Lim, who works at the Bank of Peru."
MOST_FUNCTIONS, MOST_FILES = 32, 14
# The clusters of mentions that belong to one name are a stage of their own, after tagging; their loops are compiled.
CLUSTERS = Path("ner", "identity")
MOST_CLUSTER_FUNCTIONS, MOST_CLUSTER_FILES = 6, 2


def called_functions(text: str) -> set[tuple[str, str, int]]:
    """Return file, name and line of each function of herdner that a warm call of `tag` enters."""
    folder, tagger = str(Path(herdner.__file__).parent), herdner.load("en")
    called: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Comprehensions are functions only before Python 3.12.
        if event == "call" and code.co_filename.startswith(folder) and not code.co_name.startswith("<"):
            called.add((code.co_filename, code.co_name, code.co_firstlineno))

    tagger.tag(text)  # compiles the model and fills the caches
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        document = tagger.tag(text)
    finally:
        sys.setprofile(before)
    assert len(document.entities) >= 4
    return called


def test_a_warm_call_enters_few_functions_in_few_files() -> None:
    called = called_functions(TEXT)
    assert {"tag", "infer", "calibration_inputs"} <= {name for _, name, _ in called}  # with links and calibration
    clusters = {each for each in called if str(CLUSTERS) in each[0]}
    tagging = called - clusters
    assert len(tagging) <= MOST_FUNCTIONS, sorted(tagging)
    assert len({file for file, _, _ in tagging}) <= MOST_FILES
    assert len(clusters) <= MOST_CLUSTER_FUNCTIONS, sorted(clusters)
    assert len({file for file, _, _ in clusters}) <= MOST_CLUSTER_FILES
