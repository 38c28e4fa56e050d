"""Model files: whole ones come back bit for bit; anything else is a `ModelError` that says what is wrong."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from altered import altered, members_of, packed
from hypothesis import given
from hypothesis import strategies as st
from networks import random_network
from quick import examples

from herdner.crf.weights import ChainWeights
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Gazetteers, Lexicon, vector_classes, word_classes
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import FORMAT_VERSION, ModelError
from herdner.ner.tagger import load

LABELS = ("O", "S-PER", "B-PER", "I-PER", "E-PER")


@pytest.fixture(scope="module")
def model() -> TaggerModel:
    rng = np.random.default_rng(5)
    keys = np.sort(rng.integers(1, 2**64, 40, np.uint64))
    sizes = rng.integers(1, 4, 40)
    starts = np.append(0, np.cumsum(sizes)).astype(np.uint32)
    labels = rng.integers(0, 5, starts[-1]).astype(np.uint8)
    weights = ChainWeights(LABELS, rng.normal(size=(5, 5)), keys, starts, labels, rng.normal(size=starts[-1]))
    lexicon = Lexicon(word_classes({"Ada": 12, "of": 900_000}), Gazetteers.of({"city": [["New", "York"], ["Oslo"]]}))
    lexicon = replace(lexicon, vectors=vector_classes({"oslo": 1, "ada": 0}, np.array([[0, 1, 2], [31, 127, 511]])))
    return TaggerModel(
        weights, FeaturePlan(("word[0]", "gazetteer:city[0]"), gazetteers=("city",)), lexicon, card={"name": "tiny"},
        network=random_network(LABELS, 2, units=3, dimensions=2, window=3),
    )  # fmt: skip


def assert_equal_models(a: TaggerModel, b: TaggerModel) -> None:
    assert (a.plan, a.scheme, a.constrained, a.tokenizer, a.card) == (
        b.plan,
        b.scheme,
        b.constrained,
        b.tokenizer,
        b.card,
    )
    assert a.weights.tags == b.weights.tags
    for name in ("transition", "keys", "starts", "entry_tags", "entry_weights"):
        left, right = getattr(a.weights, name), getattr(b.weights, name)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(a.lexicon.classes.keys, b.lexicon.classes.keys)
    np.testing.assert_array_equal(a.lexicon.gazetteers.phrases.values, b.lexicon.gazetteers.phrases.values)
    np.testing.assert_array_equal(a.lexicon.vectors.keys, b.lexicon.vectors.keys)
    np.testing.assert_array_equal(a.lexicon.vectors.values, b.lexicon.vectors.values)
    assert a.network.to_dict() == b.network.to_dict()
    for name, array in a.network.to_arrays().items():
        np.testing.assert_array_equal(array, b.network.to_arrays()[name])


def test_a_saved_model_comes_back_bit_for_bit(model, tmp_path):
    model.save(tmp_path / "m.herdner")
    assert_equal_models(model, TaggerModel.load(tmp_path / "m.herdner"))


def test_a_model_without_word_knowledge_comes_back(model, tmp_path):
    bare = replace(model, lexicon=Lexicon(), plan=FeaturePlan(("word[0]",)), network=None)
    bare.save(tmp_path / "m.herdner")
    assert TaggerModel.load(tmp_path / "m.herdner").lexicon == Lexicon()


def test_equal_models_are_equal_files(model, tmp_path):
    for name in ("a", "b"):
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_half_precision_rounds_the_weights_only(model, tmp_path):
    model.save(tmp_path / "m.herdner", weight_type="float16")
    loaded = TaggerModel.load(tmp_path / "m.herdner").weights
    np.testing.assert_array_equal(loaded.keys, model.weights.keys)
    np.testing.assert_allclose(loaded.entry_weights, model.weights.entry_weights, rtol=1e-3, atol=1e-7)


def test_a_model_whose_arrays_compress_well_comes_back(tmp_path):
    """The reader refuses files that unpack to far more than their size; the writer stores such arrays uncompressed."""
    tags, n = ("O", *(f"{prefix}-T{k}" for k in range(30) for prefix in "BI")), 50_000
    keys = np.unique(np.random.default_rng(0).integers(1, 2**64, n, np.uint64))
    entry_tags = np.tile(np.arange(len(tags), dtype=np.uint8), len(keys))
    starts = np.arange(0, len(entry_tags) + 1, len(tags), dtype=np.uint32)
    weights = ChainWeights(tags, np.zeros((len(tags),) * 2), keys, starts, entry_tags, np.zeros(len(entry_tags)))
    TaggerModel(weights, FeaturePlan(("word[0]",)), Lexicon(), scheme="iob2").save(tmp_path / "m.herdner")
    np.testing.assert_array_equal(TaggerModel.load(tmp_path / "m.herdner").weights.entry_tags, entry_tags)


def test_a_model_that_cannot_be_loaded_is_not_saved(model, tmp_path, monkeypatch):
    large = replace(model, weights=replace(model.weights, entry_weights=np.full(len(model.weights.entry_tags), 1e5)))
    with pytest.raises(ValueError, match="feature_weights"), np.errstate(over="ignore"):
        large.save(tmp_path / "m.herdner", weight_type="float16")
    monkeypatch.setattr("herdner.ner.model_file.LARGEST", 1000)
    with pytest.raises(ValueError, match="would unpack to"):
        model.save(tmp_path / "m.herdner")
    assert not list(tmp_path.iterdir())


def test_every_truncation_is_an_error(model):
    data = bytes_of(model)
    for length in range(len(data)):
        with pytest.raises(ModelError):
            TaggerModel.load(io.BytesIO(data[:length]))


@pytest.mark.slow
@pytest.mark.parametrize("flip", [0xFF, *(pytest.param(flip, marks=pytest.mark.slow) for flip in (0x10, 0x01))])
def test_a_flipped_byte_never_passes_as_another_model(model, flip):
    """Every byte in turn: the file is refused, or the byte was one that says nothing (dates, comments)."""
    data = bytearray(bytes_of(model))
    refused = 0
    for i in range(len(data)):
        data[i] ^= flip
        try:
            assert_equal_models(model, TaggerModel.load(io.BytesIO(bytes(data))))
        except ModelError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
        data[i] ^= flip
    assert refused > len(data) / 2


def bytes_of(model: TaggerModel) -> bytes:
    stream = io.BytesIO()
    model.save(stream)
    return stream.getvalue()


@pytest.mark.slow
@examples(300)
@given(st.data())
def test_what_is_altered_and_packed_again_is_refused(model, data):
    """Sound in every other way: a number of an array, or a value of the header, is another."""
    whole = bytes_of(model)
    members = members_of(whole)
    name = data.draw(st.sampled_from(sorted(members)))
    place = data.draw(st.integers(0, len(members[name]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != members[name][place]))
    members[name] = members[name][:place] + bytes([byte]) + members[name][place + 1 :]
    try:
        assert_equal_models(model, TaggerModel.load(io.BytesIO(packed(members))))
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "change",
    [{"card": {}}, {"scheme": "iob2"}, {"constrained": False}, {"links": [{}]}, {"more": 1}, {"checksum": "0"}],
)
def test_a_header_that_says_something_else_is_refused(model, change):
    with pytest.raises(ModelError, match="checksum does not match the contents"):
        TaggerModel.load(io.BytesIO(altered(bytes_of(model), header_with(**change), summed=False)))


def test_a_file_without_a_checksum_is_refused(model):
    def without(members):
        header = json.loads(members["header.json"])
        del header["checksum"]
        members["header.json"] = json.dumps(header).encode()

    with pytest.raises(ModelError, match="checksum does not match the contents"):
        TaggerModel.load(io.BytesIO(altered(bytes_of(model), without, summed=False)))


def test_memory_is_bounded_by_the_size_of_the_file(model):
    """Zeros pack a thousandfold; no file of weights does."""
    huge = altered(bytes_of(model), array_as("feature_keys", np.zeros(1 << 22, np.uint64)), summed=False)
    with pytest.raises(ModelError, match=r"would unpack to 32 MiB; expected at most 1\d MiB"):
        TaggerModel.load(io.BytesIO(huge))


@pytest.mark.slow
def test_a_header_that_is_too_long_is_refused_and_is_not_written(model, tmp_path):
    """Test a file whose declared contents need thirty times its size."""
    huge = altered(bytes_of(model), lambda members: members.update({"header.json": b"[" + b"[]," * (2 << 20) + b"1]"}))
    with pytest.raises(ModelError, match=r"header.json would unpack to 6 MiB; expected at most 4 MiB"):
        TaggerModel.load(io.BytesIO(huge))
    with pytest.raises(ValueError, match=r"header.json has 5 MiB; expected at most 4 MiB"):
        replace(model, card={"notes": "x" * (5 << 20)}).save(tmp_path / "m.herdner")
    assert list(tmp_path.iterdir()) == []


def header_with(**values):
    def change(members):
        members["header.json"] = json.dumps({**json.loads(members["header.json"]), **values}).encode()

    return change


def array_as(name, array):
    def change(members):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version=(1, 0))
        members[name + ".npy"] = buffer.getvalue()

    return change


def array_that_claims(shape):
    def change(members):
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
        members["transition.npy"] = buffer.getvalue() + b"\0" * 8

    return change


def array_header(text):
    """An array that numpy would not write: its header as given, without data."""

    def change(members):
        members["transition.npy"] = b"\x93NUMPY\x01\x00v\x00" + text.ljust(117) + b"\n"

    return change


def sizes_that_still_add_up(members) -> None:
    """One feature has a size below 0, and the next makes up for it."""
    sizes = np.load(io.BytesIO(members["feature_sizes.npy"])).astype(np.int64)
    sizes[[3, 4]] += -10, 10
    array_as("feature_sizes", sizes)(members)


def sizes_that_wrap(members) -> None:
    """They add up to the number of entries only modulo 2^64."""
    sizes = np.load(io.BytesIO(members["feature_sizes.npy"])).astype(np.uint64)
    sizes[:4] += np.uint64(2**62)
    array_as("feature_sizes", sizes)(members)


PLAN = {"templates": ["word[0]"], "elsewhere": [], "n_occurrences": 1, "gazetteers": ["city"], "recasing": None}
NO_PLAN = {"templates": ["no[0]"], "elsewhere": [], "n_occurrences": 0, "gazetteers": ["city"], "recasing": None}
BREAKAGES = {
    "newer format": (header_with(format_version=FORMAT_VERSION + 1, needs="3.2"), "needs herdner 3.2 or later"),
    "other format": (header_with(format="something"), "not a herdner model"),
    "no version": (header_with(format_version="one"), "format version"),
    "no header": (lambda members: members.pop("header.json"), "header.json is missing"),
    "header no JSON": (lambda members: members.update({"header.json": b"{"}), "not JSON"),
    "header deeply nested": (lambda members: members.update({"header.json": b"[" * 100_000}), "header"),
    "no labels": (header_with(tags=[]), "tags"),
    "labels no tags": (header_with(tags=["O", "x", "y", "z", "u"]), "is not a tag"),
    "labels numbers": (header_with(tags=[1, 2, 3, 4, 5]), "damaged"),
    "unknown scheme": (header_with(scheme="iob9"), "scheme"),
    "unknown template": (header_with(plan=NO_PLAN), "no"),
    "other gazetteers": (header_with(gazetteers=["city", "river"]), "gazetteers"),
    "unknown tokenizer": (header_with(tokenizer={"rules": 99}), "tokenizer"),
    "array missing": (lambda members: members.pop("feature_keys.npy"), "arrays"),
    "array renamed": (lambda members: members.update({"other.npy": members.pop("word_classes_keys.npy")}), "arrays"),
    "array too large": (array_that_claims((10**6, 10**6)), "do not fit"),
    "array negative": (array_that_claims((-1, 5)), "damaged"),
    "array of objects": (array_header(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), "the type object"),
    "transition NaN": (array_as("transition", np.full((5, 5), np.nan)), "transition"),
    "transition too large": (array_as("transition", np.full((5, 5), 1e101)), "transition has values that"),
    "transition of other numbers": (array_as("transition", np.zeros((5, 5), np.int32)), "transition of type int32"),
    "transition of the other order": (array_as("transition", np.zeros((5, 5), ">f8")), "transition of type >f8"),
    "an unknown array": (array_as("more", np.zeros(3)), "arrays differ from the list"),
    "damaged array header": (array_header(b"{'descr': '<f8', 'shape': (5, 5,"), "damaged"),
    "array header of an unclosed text": (array_header(b"{'descr': \'\'\'<f8"), "damaged"),
    "array header of brackets": (array_header(b"(" * 110), "damaged"),
    "labels one text": (header_with(tags="OSB"), "list of strings"),
    "truth in words": (header_with(constrained="false"), "constrained must be true or false"),
    "gazetteers one text": (header_with(gazetteers="city"), "list of strings"),
    "elsewhere twice": (header_with(plan={**PLAN, "elsewhere": ["lower"] * 1000}), "must not repeat an attribute"),
    "transition shape": (array_as("transition", np.zeros((4, 5))), "transition"),
    "label out of range": (array_as("feature_tags", np.full(1, 9, np.uint8)), "contradict each other"),
    "sizes below 0": (array_as("feature_sizes", np.array([-1, 2] * 20)), "feature_sizes of type int64"),
    "sizes that make up for one below 0": (sizes_that_still_add_up, "feature_sizes of type int64"),
    "sizes that wrap": (sizes_that_wrap, "feature_sizes of type uint64"),
    "sizes that do not add up": (array_as("feature_sizes", np.full(40, 65535, np.uint16)), "contradict each other"),
    "keys repeat": (array_as("feature_keys", np.zeros(40, np.uint64)), "ascend"),
    "keys wrap": (array_as("feature_keys", np.full(40, 2**63, np.uint64)), "ascend"),
}  # fmt: skip


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_unsound_models_are_refused(model, tmp_path, breakage):
    path = tmp_path / "m.herdner"
    model.save(path)
    change, words = BREAKAGES[breakage]
    path.write_bytes(altered(path.read_bytes(), change))
    with pytest.raises(ModelError, match=words) as raised:
        load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_foreign_files_are_refused(tmp_path):
    for name, data in {"empty": b"", "text": b"hello\n" * 99, "nul": b"\0" * 5000}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match="not a herdner model"):
            load(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(ModelError, match="not a herdner model"):
        load(tmp_path / "zip")
    with pytest.raises(ModelError, match="directory"):
        load(tmp_path)
    with pytest.raises(ModelError, match="there is no model 'aaa"):
        load("a" * 5000)
    with pytest.raises(ModelError, match="there is no model 'nowhere': give a file"):
        load("nowhere")


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("no", "'nb' .Norwegian."), ("German", "'de' .German."), ("nor", "'nb' .Norwegian."),
        ("en_core_web_sm", "'en' .English."), ("en_core", "'en_core7' .English."),
        ("EN_core-7", "'en_core7' .English."),        ("pt-BR", "'pt' .Portuguese."),
    ],
)  # fmt: skip
def test_the_language_of_a_missing_model_suggests_a_shipped_one(name, similar):
    with pytest.raises(ModelError, match=rf"^there is no model {name!r}: did you mean {similar}\? Give a file, or"):
        load(name)


def test_a_model_that_would_unpack_to_too_much_is_refused_before_it_is_unpacked(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m.herdner")
    monkeypatch.setattr("herdner.ner.model_file.LARGEST", 1000)
    with pytest.raises(ModelError, match="would unpack to"):
        load(tmp_path / "m.herdner")


def test_saving_that_fails_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "m.herdner"
    model.save(path)
    before = path.read_bytes()

    def fail(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("numpy.lib.format.write_array", fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.herdner"]
