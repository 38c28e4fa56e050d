"""Model files that share the word classes and vector classes of a shipped model."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import herdner
from herdner.crf.templates import linear_chain_template
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, read_model, write_model

SENTENCES = [["Ada", "Reyes", "left", "Kisumu", "."], ["Kisumu", "is", "a", "town", "."]] * 2
TAGS = [["B-PER", "I-PER", "O", "B-LOC", "O"], ["B-LOC", "O", "O", "O", "O"]] * 2


@pytest.fixture(scope="module")
def model() -> TaggerModel:
    """A small model with the lexicon of `en`."""
    lexicon = replace(herdner.load("en").model_.lexicon, gazetteers=None)
    tagger = herdner.Tagger(lexicon=lexicon, max_iterations=5, templates=(linear_chain_template(),))
    return tagger.fit(SENTENCES, TAGS).model_


def saved(model: TaggerModel, **options: Any) -> bytes:
    stream = io.BytesIO()
    model.save(stream, **options)
    return stream.getvalue()


@pytest.mark.slow
def test_a_shared_lexicon_is_not_stored_and_is_read_again(model: TaggerModel) -> None:
    whole, shared = saved(model), saved(model, shared_lexicon="en")
    assert len(shared) < 0.2 * len(whole)
    header = read_model(io.BytesIO(shared)).header["shared_lexicon"]
    assert (header["model"], len(header["arrays"])) == ("en", 4)
    read = TaggerModel.load(io.BytesIO(shared))
    assert model.lexicon.classes is not None
    assert model.lexicon.vectors is not None
    assert read.lexicon.classes is not None
    assert read.lexicon.vectors is not None
    for one, other in ((read.lexicon.classes, model.lexicon.classes), (read.lexicon.vectors, model.lexicon.vectors)):
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.values, other.values)
    text = "Bo Reyes went to Kisumu."
    assert herdner.Tagger.from_model(read).tag(text) == herdner.Tagger.from_model(model).tag(text)
    assert saved(read) == whole


def test_only_equal_arrays_are_shared(model: TaggerModel) -> None:
    other = replace(model, lexicon=replace(model.lexicon, vectors=None))
    header = read_model(io.BytesIO(saved(other, shared_lexicon="en"))).header
    assert header["shared_lexicon"]["arrays"] == ["word_classes_keys", "word_classes_values"]
    with pytest.raises(ValueError, match="the lexicon and the model 'en' have no array in common"):
        saved(replace(model, lexicon=Lexicon()), shared_lexicon="en")
    with pytest.raises(ValueError, match=r"must be one of .*, got 'none'"):
        saved(model, shared_lexicon="none")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "none"}, "the shared model must be one of"),
        ({"model": "../en"}, "the shared model must be one of"),
        ({"arrays": ["transition"]}, "the shared arrays must be some of"),
        ({"arrays": "word_classes_keys"}, "the shared arrays must be some of"),
        ({"arrays": [["x"]]}, "the shared arrays must be some of"),
        ({"checksum": "0"}, "another version of the model en"),
        ({"arrays": ["word_classes_keys"]}, "another version of the model en"),
    ],
)
def test_hostile_files_are_refused(model: TaggerModel, changes: dict[str, Any], message: str) -> None:
    file = read_model(io.BytesIO(saved(model, shared_lexicon="en")))
    file.header["shared_lexicon"].update(changes)
    stream = io.BytesIO()
    own = {"format", "format_version", "needs", "arrays", "checksum"}
    write_model(stream, {key: value for key, value in file.header.items() if key not in own}, file.arrays)
    with pytest.raises(ModelError, match=message):
        TaggerModel.load(stream)
