"""Model files with a valid checksum whose sizes or keys are chosen to take time out of proportion to the file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.resources import as_file
from pathlib import Path

import numpy as np
import pytest
from bench_model_limits import LINE, MILLION, hashed, measure, model, models, save_unchecked
from patience import PATIENCE

from herdner._ext.hashing import build_table, check_collisions
from herdner.crf.crfsuite_files import read_crfsuite
from herdner.crf.link_rules import SameWord
from herdner.crf.templates import MOST_LINK_COST, SkipChain, check_link_costs
from herdner.ner import model_file
from herdner.ner.features import MAX_ITEMS, MAX_TEMPLATES, FeaturePlan
from herdner.ner.lexicon import Gazetteers, Lexicon, WordValues
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, shipped_models
from herdner.ner.tagger import load

SECONDS = 5.0  # of processor time, also on a slow machine; the collisions took minutes


def spent(function: Callable[[], object]) -> float:
    """Seconds of processor time."""
    began = time.process_time()
    function()
    return time.process_time() - began


@pytest.fixture
def loose_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept models of regular keys, which a file may store in little space."""
    monkeypatch.setitem(model_file._RATIOS, model_file.FORMAT, 1000)


@pytest.mark.slow
@pytest.mark.usefixtures("loose_ratio")
def test_a_million_keys_are_loaded_and_used_quickly(tmp_path: Path) -> None:
    for keys in (hashed(MILLION), np.arange(1, MILLION + 1, dtype=np.uint64)):
        save_unchecked(model(keys), tmp_path / "m")
        assert spent(lambda: load(tmp_path / "m").tag(LINE)) < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("name", models())
def test_models_at_the_limits_are_quick_or_refused(tmp_path: Path, name: str) -> None:
    save_unchecked(models()[name](), tmp_path / "m")
    with suppress(ModelError):
        assert sum(measure(tmp_path / "m")) < SECONDS


COLLIDING = [
    np.arange(1, MILLION + 1, dtype=np.uint64) << np.uint64(44),  # few values of the bits that select a slot
    (np.arange(1, MILLION + 1, dtype=np.uint64) << np.uint64(32)) + np.arange(1, MILLION + 1, dtype=np.uint64),
]


# The signal comes after the given processor time, so that the measured time does not depend on the load of the machine.
CHILD = """
import signal, sys, time
from herdner.ner.tagger import load
delay = float(sys.argv[3])
signal.signal(signal.SIGPROF, signal.default_int_handler)
began = time.process_time()
signal.setitimer(signal.ITIMER_PROF, delay)
try:
    while True:
        load(sys.argv[1]).tag(sys.argv[2] * 300)
except KeyboardInterrupt:
    print(time.process_time() - began - delay)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("delay", [0.05, 0.2, 0.4, 0.8])
def test_loading_and_tagging_with_a_million_keys_can_be_interrupted(tmp_path: Path, delay: float) -> None:
    model(hashed(MILLION)).save(tmp_path / "m")
    command = [sys.executable, "-c", CHILD, str(tmp_path / "m"), LINE, str(delay)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert float(ran.stdout) < SECONDS


@pytest.mark.usefixtures("loose_ratio")
@pytest.mark.parametrize("keys", COLLIDING)
def test_a_million_colliding_keys_are_refused_at_once(tmp_path: Path, keys: np.ndarray) -> None:
    save_unchecked(model(keys), tmp_path / "m")

    def loading() -> None:
        with pytest.raises(ModelError, match="more than 256 keys collide with the key") as error:
            load(tmp_path / "m")
        assert str(error.value).startswith(f"{tmp_path / 'm'}: damaged model (")
        assert "\n" not in str(error.value)

    assert spent(loading) < SECONDS


def test_colliding_keys_are_refused_when_their_table_is_made() -> None:
    with pytest.raises(ValueError, match="more than 256 keys collide"):
        model(COLLIDING[0]).extractor()


@pytest.mark.parametrize("name", ["classes", "vectors", "gazetteers"])
def test_colliding_words_are_refused(tmp_path: Path, name: str) -> None:
    n = 10_000
    words = WordValues(COLLIDING[1][:n], np.zeros(n, np.uint32))
    made = replace(model(), lexicon=Lexicon(**{name: Gazetteers(("g",), words) if name == "gazetteers" else words}))
    if name == "gazetteers":
        made = replace(made, plan=FeaturePlan(("word[0]",), gazetteers=("g",)))
    save_unchecked(made, tmp_path / "m")
    with pytest.raises(ModelError, match=r"m: damaged model \(more than 256 keys collide"):
        load(tmp_path / "m")


def test_a_table_takes_the_same_keys_as_the_check() -> None:
    for keys in (hashed(3000), np.arange(1, 3000, dtype=np.uint64), COLLIDING[0][:256], COLLIDING[0][:257]):
        try:
            check_collisions(keys)
            is_accepted = True
        except ValueError:
            is_accepted = False
        if is_accepted:
            table = build_table(keys, np.arange(len(keys), dtype=np.uint64))
            assert sorted(table[table[:, 0] != 0].tolist()) == [[int(key), i] for i, key in enumerate(keys)]
        else:
            with pytest.raises(ValueError, match="collide"):
                build_table(keys, np.arange(len(keys), dtype=np.uint64))
        assert is_accepted == (len(keys) != 257)


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        (replace(model(), plan=FeaturePlan(("word[0]",) * (MAX_TEMPLATES + 1))), "at most 2000 templates"),
        (replace(model(), plan=FeaturePlan(("|".join(["word[0]"] * (MAX_ITEMS + 1)),))), "and 5001 items"),
        (model(n_entries=6), "a feature must have at most 5 weights, one for each tag, got 6"),
        (model(n_tables=21), "at most 20 link tables, got 21"),
        (model(n_tags=253, n_tables=1), "3 links of a mention"),
        (model(n_tags=33, n_tables=1, nearest=100), "100 links of a mention"),
    ],
)  # fmt: skip
def test_sizes_out_of_proportion_are_refused(tmp_path: Path, hostile: TaggerModel, message: str) -> None:
    save_unchecked(hostile, tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 20_000

    def loading() -> None:
        with pytest.raises(ModelError, match=message) as error:
            load(tmp_path / "m")
        assert "\n" not in str(error.value)

    assert spent(loading) < SECONDS


def test_usual_models_are_far_from_the_limits() -> None:
    rules = [SkipChain(SameWord())] * 5
    for n_labels in (4, 9, 18):  # CoNLL, CORE9, OntoNotes
        check_link_costs(rules, 4 * n_labels + 1)
    with pytest.raises(ValueError, match=f"links \\* tags \\* tags must be at most {MOST_LINK_COST:,}"):
        check_link_costs(rules, 4 * 21 + 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_models())
def test_models_unpack_to_a_quarter_of_the_limit_at_most(name: str, tmp_path: Path) -> None:
    with as_file(shipped_models()[name]) as path:
        TaggerModel.load(path).save(tmp_path / "m")  # with float64 weights
        for each in (Path(path), tmp_path / "m"):
            with zipfile.ZipFile(each) as archive:
                unpacked = sum(member.file_size for member in archive.infolist())
            assert unpacked < 10 / 4 * each.stat().st_size


def test_weights_that_compress_unlike_those_of_a_trained_model_are_refused(tmp_path: Path) -> None:
    save_unchecked(model(hashed(50_000), n_tags=64, n_entries=64), tmp_path / "m")
    with pytest.raises(ModelError, match=r"would unpack to \d+ MiB; expected at most \d+ MiB"):
        load(tmp_path / "m")


def test_strings_of_a_crfsuite_file_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """A file of 100 kB whose 10,000 attributes are one string of 50 kB."""

    def strings(links: list[int], body: bytes) -> bytes:
        head = b"CQDB" + np.array([0, 0, 0x62445371, len(links), 24 + len(body)], "<u4").tobytes()
        return head + body + np.array(links, "<u4").tobytes()

    def string(text: bytes) -> bytes:
        return np.array([0, len(text) + 1], "<u4").tobytes() + text + b"\0"

    labels = strings([24], string(b"O"))
    attributes = strings([24] * 10_000, string(b"x" * 50_000))
    features = b"FEAT" + np.array([12, 0], "<u4").tobytes()
    at = [48, 48 + len(features), 48 + len(features) + len(labels)]
    header = b"lCRF" + np.array([0], "<u4").tobytes() + b"FOMC"
    header += np.array([100, 0, 1, 10_000, *at, 0, 0], "<u4").tobytes()
    (tmp_path / "m").write_bytes(header + features + labels + attributes)
    with pytest.raises(ValueError, match="the strings overlap"):
        read_crfsuite(tmp_path / "m")
