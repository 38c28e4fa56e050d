"""Neural networks of taggers: compiled scores equal those of plain NumPy, and files are checked."""

from __future__ import annotations

import ctypes
import io
import json
import platform
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from altered import Members, altered
from hypothesis import given
from hypothesis import strategies as st
from networks import numpy_scores, random_network
from quick import examples

import herdner
from herdner import Tagger
from herdner._ext.network import CompiledNetwork
from herdner.crf.weights import ChainWeights
from herdner.ner.decode import Decoder
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Gazetteers, Lexicon, vector_classes
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError
from herdner.ner.network import Network
from herdner.text.document import Document

TAGS = ("O", "S-PER", "B-PER", "I-PER", "E-PER")
WORDS = ["the", "Paris", "PARIS", "Bank", "of", "New", "York", "said", "U.S.", "1998", "O'Neil", "Straße", "中国", "x"]
VECTORS = vector_classes(
    {word: i % 3 for i, word in enumerate(["the", "paris", "bank", "of", "new", "york", "1998", "straße"])},
    np.array([[0, 1, 2], [31, 127, 511], [4, 5, 6]]),
)
GAZETTEERS = Gazetteers.of({"city": [["New", "York"], ["Paris"]]})
PLACES = ("casing", 4), ("run", 5), ("gazetteer:city", 3)
LEXICON = Lexicon(vectors=VECTORS, gazetteers=GAZETTEERS)
N_WORDS = len(VECTORS.keys)
sentences_of_words = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def en() -> Tagger:
    return herdner.load("en")


def model(network: Network | None, tags: tuple[str, ...] = TAGS, lexicon: Lexicon = LEXICON) -> TaggerModel:
    """Return a model whose features have no weights."""
    weights = replace(ChainWeights.empty(), tags=tags, transition=np.zeros((len(tags), len(tags))))
    return TaggerModel(weights, FeaturePlan(("word[0]",), gazetteers=GAZETTEERS.names), lexicon, network=network)


def scores_of(made: TaggerModel, document: Document) -> np.ndarray:
    return made.extractor().scores(document.tokens, document.sentence_offsets)


@examples(60)
@given(sentences_of_words, st.integers(0, 2**32), st.data())
def test_compiled_scores_equal_those_of_numpy_exactly(sentences, seed, data):
    document = Document.from_tokens(sentences)
    network = random_network(
        TAGS, N_WORDS, seed, units=data.draw(st.sampled_from([1, 7, 16, 40])),
        window=data.draw(st.sampled_from([1, 3, 7, 19])),
        dimensions=data.draw(st.sampled_from([1, 5, 16, 33])), n_codes=data.draw(st.integers(0, 3)),
        shift=data.draw(st.integers(0, 12)), largest=data.draw(st.sampled_from([3, 40, 128])),
        places=PLACES[: data.draw(st.integers(0, 3))],
    )  # fmt: skip
    tags = tuple(data.draw(st.permutations([*TAGS, "S-NEW"])))
    expected = numpy_scores(network, LEXICON, document.tokens, document.sentence_offsets, tags)
    np.testing.assert_array_equal(scores_of(model(network, tags), document), expected)


def test_a_network_may_have_many_more_tags_than_the_model():
    network = random_network([*TAGS, *(f"B-{i}" for i in range(3000))], N_WORDS)
    document = Document.from_tokens([WORDS] * 3)
    expected = numpy_scores(network, LEXICON, document.tokens, document.sentence_offsets, TAGS[:2])
    np.testing.assert_array_equal(scores_of(model(network, TAGS[:2]), document), expected)


LOOPS = """
#include "network_loops.h"
#define LOOP(name) \\
    void name##_16(int32_t *s, const int16_t *a, const int16_t *b, int64_t n) { network_lanes_##name(s, a, b, n); }
LOOP(plain)
LOOP(sse2)
LOOP(avx2)
"""


@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("gcc") is None or not Path("/proc/cpuinfo").exists(),
    reason="needs GCC on Linux and x86_64",
)
def test_the_loops_of_all_instruction_sets_agree(tmp_path):
    """The installed module calls only the loop of this machine's instruction set, so the test compiles all three."""
    folder = Path(__file__).parents[2] / "cython_ext"
    source, library = tmp_path / "loops.c", tmp_path / "loops.so"
    source.write_text(LOOPS)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{folder}", "-o", library, source], check=True)
    loops, rng = ctypes.CDLL(str(library)), np.random.default_rng(0)
    names = ["plain", "sse2"] + ["avx2"] * ("avx2" in Path("/proc/cpuinfo").read_text())
    for n_pairs in (1, 2, 7, 128):
        matrix = rng.integers(-128, 128, (n_pairs, 16, 2)).astype(np.int16)
        vector = rng.integers(-127, 128, (n_pairs, 2)).astype(np.int16)
        expected = np.einsum("jic,jc->i", matrix.astype(np.int64), vector.astype(np.int64))
        for name in names:
            sums = np.empty(16, np.int32)
            pointers = [ctypes.c_void_p(each.ctypes.data) for each in (sums, matrix, vector)]
            getattr(loops, f"{name}_16")(*pointers, ctypes.c_int64(n_pairs))
            np.testing.assert_array_equal(sums, expected, err_msg=name)


def test_the_largest_numbers_do_not_overflow():
    for sign in (1, -1):
        network = random_network(TAGS, N_WORDS, units=512, window=19, dimensions=256, shift=0)
        full = {
            name: np.full_like(getattr(network, name), 127) for name in ("tables", "hidden", "outputs", "place_rows")
        }
        network = replace(
            network, **full, bias=np.full(512, 1 << 14, np.int16), output_bias=np.full(5, sign * (1 << 28), np.int32)
        )
        document = Document.from_tokens([WORDS * 3])
        expected = numpy_scores(network, LEXICON, document.tokens, document.sentence_offsets, TAGS)
        np.testing.assert_array_equal(scores_of(model(network), document), expected)


def test_a_network_adds_its_scores_to_those_of_the_features(en: Tagger):
    document = Decoder.of(en.model_).read(
        en.tag("Ada Reyes met Bo Lim at the Bank of Peru. Reyes left.").without_annotation()
    )
    own, tags = en.model_, en.classes_
    n_words = len(own.lexicon.vectors.keys) if own.lexicon.vectors is not None else 0
    network = random_network(tags, n_words, 3, places=PLACES)
    features = scores_of(replace(own, network=None), document)
    extractor = replace(own, network=network).extractor()
    added = extractor.network_scores(document.tokens, document.sentence_offsets)
    assert np.ptp(added) > 0.1
    np.testing.assert_array_equal(
        added, numpy_scores(network, own.lexicon, document.tokens, document.sentence_offsets, tags)
    )
    together = extractor.scores(document.tokens, document.sentence_offsets)
    np.testing.assert_allclose(together, features + added, rtol=0, atol=1e-12)


@given(sentences_of_words)
@examples(30)
def test_documents_in_one_call_have_the_scores_that_they_have_alone(sentences):
    extractor = model(random_network(TAGS, N_WORDS)).extractor()
    documents = [Document.from_tokens([sentence]) for sentence in sentences]
    starts = np.cumsum([0, *map(len, sentences)])
    together = extractor.scores([token for each in sentences for token in each], starts, starts)
    alone = [extractor.scores(each.tokens, each.sentence_offsets) for each in documents]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    cut = [extractor.scores(Document.from_tokens([s]).tokens, np.array([0, len(s)])) for s in sentences]
    for (begin, end), own in zip(pairwise(starts.tolist()), cut, strict=True):
        np.testing.assert_array_equal(together[begin:end], own)


def test_scores_do_not_depend_on_words_that_were_scored_before():
    extractor, document = model(random_network(TAGS, N_WORDS)).extractor(), Document.from_tokens([WORDS])
    first = extractor.scores(document.tokens, document.sentence_offsets)
    for i in range(70):  # more new words than a store holds
        extractor.scores([f"other{i}-{j}" for j in range(1000)], np.array([0, 1000]))
    np.testing.assert_array_equal(extractor.scores(document.tokens, document.sentence_offsets), first)


def test_a_new_tag_has_the_largest_score_of_all_tags():
    document = Document.from_tokens([WORDS])
    scores = scores_of(model(random_network(TAGS, N_WORDS), (*TAGS, "S-NEW")), document)
    np.testing.assert_array_equal(scores[:, 5], scores[:, :5].max(axis=1))


def bytes_of(made: TaggerModel) -> bytes:
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def test_a_saved_network_comes_back_bit_for_bit():
    network = random_network(TAGS, N_WORDS)
    loaded = TaggerModel.load(io.BytesIO(bytes_of(model(network)))).network
    assert loaded is not None
    assert loaded.to_dict() == network.to_dict()
    for name, array in network.to_arrays().items():
        assert loaded.to_arrays()[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded.to_arrays()[name], array)


def test_a_model_without_a_network_has_no_array_of_it():
    assert TaggerModel.load(io.BytesIO(bytes_of(model(None)))).network is None


def changed(**changes: object) -> dict[str, object]:
    network = random_network(TAGS, N_WORDS)
    values = {name: getattr(network, name) for name in network.__dataclass_fields__}
    return {
        **values,
        **{name: change(values[name]) if callable(change) else change for name, change in changes.items()},
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"tags": TAGS[:4]}, {"tags": ("O", "O", *TAGS[2:])}, {"tables": lambda a: a[:-1]},
        {"tables": lambda a: a[:, :3]},
        {"hidden": lambda a: a[:2]}, {"hidden": lambda a: a[:, :3]}, {"hidden": lambda a: a[..., :3]},
        {"bias": lambda a: a[:3]}, {"bias": lambda a: a + np.int16(20_000)}, {"outputs": lambda a: a[:, :3]},
        {"outputs": lambda a: a[:3]}, {"outputs": lambda a: a.astype(np.int16)}, {"output_bias": lambda a: a[:3]},
        {"output_bias": lambda a: a + (1 << 30)}, {"shift": -1}, {"shift": 31}, {"scale": np.inf}, {"scale": -1.0},
        {"codes": lambda a: a[:, :1]}, {"codes": lambda a: a.astype(np.int64)},
        {"tables": lambda a: a.astype(np.int32)},
        {"attributes": (("brief_shape", 40),)}, {"attributes": (("nonsense", 4),)}, {"attributes": (("lower", 0),)},
        {"attributes": (("casing", 4),)},
        {"places": (("lower", 4),)}, {"places": (("casing", 5),)}, {"places": (("casing", 0),)}, {"places": ()},
        {"place_rows": lambda a: a[:-1]}, {"place_rows": lambda a: a[:, :3]},
    ],
)  # fmt: skip
def test_arrays_that_contradict_each_other_are_refused(changes):
    with pytest.raises(ValueError, match=r"network|array|columns|weights"):
        Network(**changed(**changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-2, 5, 2**31 - 1])
def test_columns_must_be_tags_of_the_network(wrong):
    network = random_network(TAGS, N_WORDS)
    places = np.array([[0, 4], [2, 5], [7, 1]], np.int32), network.place_rows
    arrays = network.tables, network.codes, *places, network.hidden, network.bias, network.outputs, network.output_bias
    attributes = np.array([[4, 4], [10, 6], [22, 5], [1, 7]], np.int32)
    CompiledNetwork(attributes, *arrays, 6, 0.1, np.array([0, -1], np.int32))
    with pytest.raises(ValueError, match="columns"):
        CompiledNetwork(attributes, *arrays, 6, 0.1, np.array([0, wrong], np.int32))


@pytest.mark.parametrize(
    "change",
    [
        {"tags": ["O"]}, {"tags": 5}, {"tags": [1, 2, 3, 4, 5]}, {"shift": 1.5}, {"shift": True}, {"shift": 10**30},
        {"scale": "1"}, {"scale": 1e300}, {"scale": float("nan")}, {"attributes": [["lower", 5]]}, {"attributes": 3},
        {"attributes": [["lower", 1 << 40]]}, {"attributes": [["lower"]]}, {"attributes": [["word", True]]},
        {"places": [["casing", 4]]}, {"places": [["gazetteer:team", 4], ["run", 5], ["bias", 1]]}, {"places": [[1, 2]]},
    ],
)  # fmt: skip
def test_files_with_a_bad_network_are_refused(change):
    network = random_network(TAGS, N_WORDS)

    def edit(members: Members) -> None:
        header = json.loads(members["header.json"])
        members["header.json"] = json.dumps({**header, "network": {**network.to_dict(), **change}}).encode()

    with pytest.raises(ModelError, match="damaged model"):
        TaggerModel.load(io.BytesIO(altered(bytes_of(model(network)), edit)))


@pytest.mark.parametrize("name", sorted(random_network(TAGS, N_WORDS).to_arrays()))
def test_files_without_an_array_of_the_network_are_refused(name):
    def edit(members: Members) -> None:
        header = json.loads(members["header.json"])
        del members[f"{name}.npy"]
        members["header.json"] = json.dumps({**header, "arrays": [a for a in header["arrays"] if a != name]}).encode()

    with pytest.raises(ModelError, match=f"{name}' is missing"):
        TaggerModel.load(io.BytesIO(altered(bytes_of(model(random_network(TAGS, N_WORDS))), edit)))


def test_a_network_for_another_number_of_words_is_refused():
    message, other = f"vectors of {N_WORDS + 1} words, but the lexicon has {N_WORDS}", random_network(TAGS, N_WORDS + 1)
    with pytest.raises(ValueError, match=message):
        bytes_of(model(other))

    def edit(members: Members) -> None:
        header = json.loads(members["header.json"])
        members["header.json"] = json.dumps({**header, "network": other.to_dict()}).encode()
        for name, array in other.to_arrays().items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            members[f"{name}.npy"] = buffer.getvalue()

    with pytest.raises(ModelError, match=message):
        TaggerModel.load(io.BytesIO(altered(bytes_of(model(random_network(TAGS, N_WORDS))), edit)))


def test_adapting_keeps_the_network(en: Tagger):
    network = random_network(en.classes_, len(en.model_.lexicon.vectors.keys))  # type: ignore[union-attr]
    base = Tagger.from_model(replace(en.model_, network=network))
    documents = [Document.from_tokens([["Ada", "sailed", "the", "Erebus"]], [["S-PER", "O", "O", "S-SHIP"]])] * 4
    adapted = Tagger(n_folds=2).fit(documents, base=base)
    assert adapted.model_.network is network
    assert "S-SHIP" in adapted.classes_
    assert Tagger(n_folds=2).fit(documents).model_.network is None
