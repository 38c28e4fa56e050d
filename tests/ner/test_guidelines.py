"""Corpora of different rules in one model: whose guideline it follows."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.crf.templates import linear_chain_template
from herdner.crf.weights import ChainWeights
from herdner.ner.features import FeaturePlan, default_plan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.ner.tagger import Tagger
from herdner.ner.training.guidelines import FeatureCopies
from herdner.text.document import Document

HANDLES = "odera", "wanjala", "achieng", "kamau", "njeri", "otieno"
CITIES = "Kisumu", "Mombasa", "Nakuru", "Eldoret", "Malindi", "Lamu"


def corpora() -> tuple[list[Document], list[str]]:
    """Two corpora that agree on towns; in one of them handles are people, in the other they are nothing."""
    found: list[Document] = []
    groups: list[str] = []
    for corpus, tag in (("posts", "B-PER"), ("news", "O")):
        for handle, city in zip(HANDLES, CITIES, strict=True):
            tokens = ["in", city, f"@{handle}", "slept"]
            found.append(Document.from_tokens([tokens], [["O", "B-LOC", tag, "O"]]))
            groups.append(corpus)
    return found, groups


def trained(guideline: str | None, trainer: str = "herdner") -> Tagger:
    documents, groups = corpora()
    tagger = Tagger(templates=(linear_chain_template(),), c2=0.05, trainer=trainer)  # pyright: ignore[reportArgumentType]
    return tagger.fit(documents, groups=groups, guideline=guideline)


NEW = Document.from_tokens([["in", "Nakuru", "@mwangi", "slept"]])


@pytest.mark.parametrize("trainer", ["herdner", "crfsuite"])
def test_a_model_follows_the_guideline_it_is_asked_for(trainer):
    assert [e.label for e in trained("posts", trainer).tag(NEW).entities] == ["LOC", "PER"]
    assert [e.label for e in trained("news", trainer).tag(NEW).entities] == ["LOC"]


def test_models_of_two_guidelines_share_the_weights_of_features_without_copies():
    posts, news = (trained(name).model_.weights for name in ("posts", "news"))
    documents, _ = corpora()
    extractor = make_extractor(FeaturePlan(("suffix4[0]", "word[-1]|word[0]")), Lexicon())
    keys = np.unique(np.concatenate([extractor.keys(d.tokens, d.sentence_offsets)[1] for d in documents]))
    shared = [each.entry_weights[each.entries_of(keys)[1]] for each in (posts, news)]
    assert len(shared[0]) > 0
    np.testing.assert_array_equal(*shared)
    assert (posts.entry_weights != news.entry_weights).any()


def test_settled_weights_score_as_features_and_copies_do_together():
    """Random weights for all features: the documents of the followed corpus have the scores that training saw, those of
    the other one the scores of the shared features and of the followed corpus's copies.
    """
    documents, groups = corpora()
    plan, rng = default_plan(), np.random.default_rng(0)
    extractor = make_extractor(plan, Lexicon())
    shared = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents]
    guided = FeatureCopies.of(documents, shared, groups, "posts", plan, Lexicon())
    keys = np.unique(np.concatenate([k for _, k in guided.features]))
    weights = ChainWeights(
        ("O",), np.zeros((1, 1)), keys, np.arange(len(keys) + 1, dtype=np.uint32), np.zeros(len(keys), np.uint8),
        rng.normal(size=len(keys)),
    )  # fmt: skip
    of_key = dict(zip(keys.tolist(), weights.entry_weights.tolist(), strict=True))
    settled = guided.merge_weights(weights)
    of_settled = dict(zip(settled.keys.tolist(), settled.entry_weights.tolist(), strict=True))
    assert not set(of_settled) & set(guided.all_copies.tolist())
    for i, group in enumerate(groups):
        (_, all_keys), (_, plain) = guided.features[i], shared[i]
        total = sum(of_settled.get(key, 0.0) for key in plain.tolist())
        seen = sum(of_key[key] for key in all_keys.tolist())
        assert (total == pytest.approx(seen)) == (group == "posts")


@pytest.mark.parametrize(("groups", "guideline"), [(None, "posts"), (["posts"] * 6 + ["news"] * 6, "tweets")])
def test_a_guideline_that_no_document_has_is_refused(groups, guideline):
    with pytest.raises(ValueError, match="`guideline` must be one of `groups`"):
        Tagger().fit(corpora()[0], groups=groups, guideline=guideline)
