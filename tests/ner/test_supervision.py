"""Partial annotation beside an enumeration of all that it allows, and what it does to training."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from data import news

from herdner.evaluation.scores import evaluate
from herdner.ner.tagger import Tagger
from herdner.ner.training.allowed_tags import mark_unannotated_labels
from herdner.ner.training.corpus import prepare_corpus
from herdner.text.document import Document
from herdner.text.partial import PartialAnnotation
from herdner.text.tags import SCHEMES, Span, allowed_transitions, convert_tags, tags_from_spans

IOB2 = ["O", "B-X", "I-X", "B-Y", "I-Y"]
MARKS = [*IOB2, "?", "?", "X|Y", "B-X|O", "I-Y|B-Y", "Y|O"]


def well_formed(tags: Sequence[str], scheme) -> bool:
    ok = allowed_transitions(tags := list(tags), scheme)
    return bool(ok.start[0] and ok.end[-1] and all(ok.follow[i, i + 1] for i in range(len(tags) - 1)))


def fits(tag: str, mark: str) -> bool:
    return any(choice in ("?", tag) or choice == tag[2:] for choice in mark.split("|"))


def document(*sentences: Sequence[str]) -> Document:
    return Document.from_tokens([[f"w{i}" for i in range(len(tags))] for tags in sentences], sentences)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "iob1"])
def test_what_is_allowed_is_what_the_marks_allow(scheme):
    """All taggings that are well formed in IOB2 and fit the marks are, in any scheme, those that are allowed."""
    rng = np.random.default_rng(0)
    n_checked = 0
    for _ in range(120):
        marks = rng.choice(MARKS, rng.integers(2, 5)).tolist()
        right = {
            tuple(convert_tags(tags, None, scheme))
            for tags in itertools.product(IOB2, repeat=len(marks))
            if well_formed(tags, "iob2") and all(map(fits, tags, marks))
        }
        if not right or not any("|" in mark or mark == "?" for mark in marks):
            continue  # marks that collide
        corpus = prepare_corpus([document(marks, ["B-X", "B-Y"])], None, scheme)
        rows = corpus.allowed[0][: len(marks)]
        columns = [[corpus.tags[k] for k in np.flatnonzero(row)] for row in rows]
        assert {tags for tags in itertools.product(*columns) if well_formed(tags, scheme)} == right, marks
        n_checked += 1
    assert n_checked > 30


def test_classes_that_only_open_tags_name_come_in_the_order_of_the_text():
    """Not in that of a set, which is another in each process: models of the same documents must be the same."""
    names = [f"C{i}" for i in (5, 2, 7, 1, 6, 3)]
    corpus = prepare_corpus([document(["B-X", "O"], [f"{name}|O" for name in names])], None, "iob2")
    assert list(corpus.tags) == ["B-X", "O", "I-X", *(f"{p}-{name}" for name in names for p in "BI")]


def test_tokens_outside_may_be_of_a_class_that_was_not_looked_for():
    documents = [replace(document(["B-X", "O"]), partial=PartialAnnotation((), ("X",))), document(["B-Y", "O"])]
    corpus = prepare_corpus(documents, None, "iob2")
    may = [{corpus.tags[k] for k in np.flatnonzero(row)} for rows in corpus.allowed for row in rows]
    assert may == [{"B-X"}, {"O", "B-Y", "I-Y"}, {"B-Y"}, {"O"}]
    assert corpus.counted[0].sum() == 2


def test_links_learn_from_the_best_of_what_is_allowed():
    corpus = prepare_corpus([document(["B-X", "?"], ["?", "O"])], None, "iob2")
    n = len(corpus.tags)
    unary = np.zeros((4, n))
    unary[:, corpus.tags.index("I-X")] = 5
    found = corpus.states(0, unary, np.zeros((n, n)))
    assert [corpus.tags[k] for k in found][:2] == ["B-X", "I-X"]
    assert corpus.tags[found[2]] != "I-X"  # which may not begin a sentence
    assert corpus.tags[found[3]] == "O"


def only(documents: Sequence[Document], label: str) -> list[Document]:
    """The documents as somebody annotates them who looks for one class."""
    kept = [[span for span in d.spans or [] if span.label == label] for d in documents]
    return [d.with_tags(tags_from_spans(spans, d.n_tokens)) for d, spans in zip(documents, kept, strict=True)]


@pytest.mark.slow
def test_a_corpus_that_does_not_mark_a_class_does_not_teach_that_it_is_no_name():
    train, dev = news("train"), news("dev")
    corpora = [only(train[::2], "PER"), only(train[1::2], "LOC")]
    gold = [d.with_spans([Span(*s) for s in d.spans or [] if s.label != "ORG"]) for d in dev]

    def f1(documents: list[Document]) -> float:
        tagger = Tagger(max_iterations=25, templates=None, n_folds=2).fit(documents)
        return evaluate(gold, list(tagger.pipe(d.without_annotation() for d in dev))).micro.f1

    apart = mark_unannotated_labels(corpora)
    assert [d.partial for d in apart[0]] == [PartialAnnotation((), ("PER",))] * len(apart[0])
    assert f1(list(itertools.chain(*apart))) > f1(list(itertools.chain(*corpora))) + 0.1


def test_documents_that_say_what_they_annotate_are_left_alone():
    mine = replace(document(["B-X", "O"]), partial=PartialAnnotation((), ("X", "Z")))
    assert mark_unannotated_labels([[mine], [document(["B-Y"])]])[0] == [mine]
    assert mark_unannotated_labels([[document(["B-X", "O"])]])[0][0].partial is None
    assert mark_unannotated_labels([[document(["B-X", "O"])]], ["Y"])[0][0].partial == PartialAnnotation((), ("X",))


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([document(["?", "?"])], "no token of the training documents is annotated"),
        ([document(["?", "O"])], "the training documents have no entity"),
        ([document(["B-X|B-Y", "O", "I-X|I-Y"])], "allows no tag sequence that is well formed in iobes"),
        (
            [replace(document(["B-X", "O"]), partial=PartialAnnotation((), ("Y",)))],
            "is a X, which is not among the annotated labels",
        ),
    ],
)
def test_annotation_that_cannot_be_is_refused_in_one_line(documents, message):
    with pytest.raises(ValueError, match=message) as error:
        Tagger().fit(documents)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("mark", ["B-X{}", "X{}|O"])
def test_more_classes_than_a_model_holds_are_refused_before_training(mark):
    most = 255 if mark[0] == "B" else 63  # IOBES has four tags of each class that may be open
    documents = [document(["B-Y", "O"]), *(document([mark.format(i), "O"]) for i in range(most + 1))]
    with pytest.raises(ValueError, match=r"at most 256 tags, but [\d,]+ labels need [\d,]+ tags; merge some labels"):
        Tagger().fit(documents)


def test_tags_outside_the_allowed_ones_are_refused():
    with pytest.raises(ValueError, match="overlaps an unannotated range"):
        Tagger().fit([document(["B-X", "X|Y"])], [["B-X", "B-Y"]])


def test_what_cannot_learn_from_it_says_so():
    some = [document(["B-X", "?"])]
    with pytest.raises(ValueError, match="needs fully annotated documents"):
        Tagger(trainer="crfsuite").fit(some)
    with pytest.raises(ValueError, match="development documents must be fully annotated"):
        Tagger().fit([document(["B-X", "O"])], development=some)
