"""Explanations of labels: the contributions of each mention against the log-potential of the whole graph."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from data import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

import herdner
from herdner import Tagger, read_documents
from herdner._ext.features import POSITION_ATTRIBUTES, TYPE_ATTRIBUTES
from herdner._ext.hashing import hash_string
from herdner.crf.link_rules import SameStem, SameWord
from herdner.crf.model import LinkTable
from herdner.crf.templates import skip_chain_template
from herdner.crf.weights import ChainWeights
from herdner.ner.descriptions import PREDICATES, brief
from herdner.ner.explain import Explanation, NoSuchName, weights_of
from herdner.ner.features import FeaturePlan, default_plan, make_extractor
from herdner.ner.lexicon import Gazetteers, Lexicon, vector_classes, word_classes
from herdner.ner.model import TaggerModel
from herdner.text.document import Document
from herdner.text.tags import Span, spans_from_tags, tags_from_spans

ARTICLE = (REPOSITORY / "corpora" / "article.txt").read_text(encoding="utf-8")
STORIES = list(read_documents(REPOSITORY / "corpora" / "herdner_news.dev.conll", "conll"))[:4]
TEXTS = [ARTICLE, *(story.text for story in STORIES), "Kenya", "Ada. Ada Ada met Ada Ada."]


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return herdner.load("en")


# --- the sum


class WholeGraph:
    """The unrolled graph of a tagged document, in which any two of its states can be compared."""

    def __init__(self, tagger: Tagger, document: Document, links: bool, names: object = None) -> None:
        self.model, self.document = tagger.model_, document
        offsets = document.sentence_offsets
        crf = self.model.crf() if links else replace(self.model.crf(), link_tables=())
        unary = self.model.extractor().scores(document.tokens, offsets)
        if names is not None:
            tagger.finder(names)(document, True).add_to(unary)
        self.graph = crf.unroll(unary, offsets, crf.links(document.tokens, offsets))
        self.number = {tag: k for k, tag in enumerate(tagger.classes_)}

    def log_odds(self, i: int, label: str | None) -> float:
        """The log-potential of the graph at the tags of the document, less that where mention i has another label."""
        tags, offsets = list(self.document.tags), self.document.sentence_offsets
        spans = spans_from_tags(tags, offsets)
        if self.model.constrained:
            kept = [*spans[:i], *([] if label is None else [Span(*spans[i][:2], label)]), *spans[i + 1 :]]
            other = tags_from_spans(kept, len(tags), self.model.scheme, offsets)
        else:
            start, end, _ = spans[i]
            inside = [] if label is None else [(0, end - start, label)]
            other = tags[:start] + tags_from_spans(inside, end - start, self.model.scheme) + tags[end:]
        ours, theirs = self.graph.log_potential(np.array([[self.number[t] for t in each] for each in (tags, other)]))
        return float(ours - theirs)


def check(tagger: Tagger, text: str | Document, **options) -> int:
    """Each mention of a text against the oracle; their number."""
    document = tagger.tag(text, **options)
    whole = WholeGraph(tagger, document, options.get("links", True), options.get("names"))
    plain = tagger.explain(text, **options)
    assert [each.mention for each in plain] == list(document.entities)
    kinds = {tag[2:] for tag in tagger.classes_ if tag != "O"}
    for i, each in enumerate(plain):
        assert each.log_odds == pytest.approx(whole.log_odds(i, None), abs=1e-9, rel=1e-12)
        assert math.fsum(part.value for part in each.parts) == pytest.approx(each.log_odds, abs=1e-12, rel=1e-12)
        assert each.against is None
    for label in kinds:
        for each in tagger.explain(text, against=label, **options):
            i = document.entities.index(each.mention)
            assert each.mention.label != label == each.against
            assert each.log_odds == pytest.approx(whole.log_odds(i, label), abs=1e-9, rel=1e-12)
    for each in tagger.explain(text, against="best", **options):
        i = document.entities.index(each.mention)
        odds = {label: whole.log_odds(i, label) for label in kinds - {each.mention.label}}
        assert each.against == min(odds, key=lambda label: odds[label])
        assert each.log_odds == pytest.approx(odds[each.against], abs=1e-9, rel=1e-12)
    return len(plain)


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
@pytest.mark.parametrize("links", [True, False])
def test_parts_add_up_to_the_difference_of_the_whole_graph(tagger: Tagger, text: str, links: bool) -> None:
    assert check(tagger, text, links=links) > 0


@pytest.mark.parametrize("backend", ["gibbs", "icm"])
def test_so_they_do_at_what_another_backend_chose(tagger: Tagger, backend: str) -> None:
    assert check(tagger, ARTICLE, backend=backend, seed=3) > 20


def test_names_that_the_user_gave_are_parts(tagger: Tagger) -> None:
    names = [("Winam", "ORG", 2.5), ("Kisumu", "PER", 1.5), ("Charlotte Akinyi", "PER", 1.0), ("pier", "LOC", 30.0)]
    assert check(tagger, ARTICLE, names=names) > 20
    given = {each.mention.text: each for each in tagger.explain(ARTICLE, names=names)}
    assert given["Winam"].total("name") == 2.5
    assert given["Charlotte Akinyi"].total("name") == 2.0  # 1 for each of its tokens
    assert sayings(given["pier"])["known names"] == 30
    if given["Kisumu"].mention.label == "LOC":
        against = tagger.explain(ARTICLE, names=names, name="Kisumu", against="PER")
        assert any(each.total("name") == -1.5 for each in against)


def test_what_must_be_a_name_has_no_other_reading(tagger: Tagger) -> None:
    (found,) = tagger.explain("The pier is long.", names=[("pier", "LOC", math.inf)])
    assert (found.mention.text, found.mention.label, found.log_odds) == ("pier", "LOC", math.inf)
    assert found.parts[0] == ("name", math.inf, "known names forbid the alternative", "")
    assert all(math.isfinite(part.value) for part in found.parts[1:])
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["log_odds"] is values["parts"][0]["value"] is values["totals"]["name"] is None
    assert found.mention.confidence == found.confidence_without_links == 1


WORDS = ["the", "Paris", "PARIS", "Bank", "of", "New", "York", "said", "U.S.", "1998", "O'Neil", "Banks"]
sentences = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=4)
CLASSES = word_classes({"Paris": 11, "the": 77, "said": 2730, "of": 1023, "new": 3, "Reuters": 11})
LISTS = Gazetteers.of({"city": [["New", "York"], ["Paris"]], "org": [["Bank", "of", "New", "York"]]})
PLAN = default_plan(LISTS.names)
SCHEMES = {"iobes": "OBIES", "iob2": "OBI", "iob1": "OBI", "bilou": "OBILU"}


def tiny(scheme: str, constrained: bool, seed: int = 0) -> Tagger:
    """Return a tagger with random weights and two link tables."""
    rng = np.random.default_rng(seed)
    labels = ("O", *(f"{prefix}-{label}" for label in ("PER", "LOC") for prefix in SCHEMES[scheme][1:]))
    tokens = [word for word in WORDS for _ in range(2)]
    keys = np.unique(make_extractor(PLAN, Lexicon(CLASSES, LISTS)).keys(tokens, np.array([0, len(tokens)]))[1])
    sizes = rng.integers(0, 4, len(keys))
    entries = np.concatenate([rng.permutation(len(labels))[:size] for size in sizes]).astype(np.uint8)
    starts = np.append(0, np.cumsum(sizes)).astype(np.uint32)
    weights = ChainWeights(
        labels, rng.normal(size=(len(labels),) * 2), keys, starts, entries, rng.normal(size=len(entries)) / 2
    )
    tables = [rng.normal(size=(len(labels),) * 2) for _ in range(2)]
    linked = (
        LinkTable(skip_chain_template(SameWord()), tables[0]),
        LinkTable(skip_chain_template(SameStem()), tables[1]),
    )
    return Tagger.from_model(
        TaggerModel(weights, PLAN, Lexicon(CLASSES, LISTS), scheme, constrained, link_tables=linked)
    )


@pytest.mark.slow
@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES)
@given(sentences=sentences, seed=st.integers(0, 3))
@examples(15)
def test_so_they_do_in_every_scheme_with_any_weights(scheme, constrained, sentences, seed) -> None:
    check(tiny(scheme, constrained, seed), Document.from_tokens(sentences))


def test_a_name_that_touches_one_of_its_label_is_left_out_in_iob1() -> None:
    """Without the name before it, the tag of the second is I-PER and no longer B-PER, which would be forbidden."""
    tagger = tiny("iob1", True)
    number = {tag: k for k, tag in enumerate(tagger.classes_)}
    transition = np.zeros((5, 5))
    transition[number["I-PER"], number["B-PER"]] = 40
    tagger.model_ = replace(tagger.model_, weights=replace(tagger.model_.weights, transition=transition))
    document = Document.from_tokens([["Paris", "York"]])
    assert tagger.tag(document).tags == ["I-PER", "B-PER"]
    assert check(tagger, document) == 2
    assert all(math.isfinite(each.log_odds) for each in tagger.explain(document))


def test_a_pruned_model_says_less_and_adds_up(tagger: Tagger) -> None:
    model = tagger.model_
    pruned = Tagger.from_model(replace(model, weights=model.weights.prune(0.2)))
    assert check(pruned, ARTICLE) > 20
    counts = [sum(len(each.parts) for each in each_tagger.explain(ARTICLE)) for each_tagger in (tagger, pruned)]
    assert counts[1] < counts[0] / 2


def test_a_model_without_weights_has_transitions_and_links_alone() -> None:
    tagger = tiny("iob2", True)
    weights = tagger.model_.weights
    empty = np.empty(0)
    bare = replace(
        weights, keys=empty.astype(np.uint64), starts=np.zeros(1, np.uint32), entry_tags=empty.astype(np.uint8),
        entry_weights=empty,
    )  # fmt: skip
    tagger = Tagger.from_model(replace(tagger.model_, weights=bare))
    check(tagger, Document.from_tokens([["Paris", "of"], ["Paris"]]))
    assert weights_of(bare, np.array([3], np.uint64), [0]).tolist() == [[0]]


@pytest.mark.slow
def test_threads_get_the_same(tagger: Tagger) -> None:
    alone = list(map(tagger.explain, TEXTS * 2))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(herdner.load("en").explain, TEXTS * 2)) == alone


def test_the_largest_weights_of_a_tagger(tagger: Tagger) -> None:
    table = tagger.explain_weights([*STORIES, ["Ada", "met", "Bob", "."]], top=3)
    weights, extractor = tagger.model_.weights, tagger.model_.extractor()
    own = {tag: [weight for kind, each, _, weight in table.rows if kind == "state" and each == tag]
           for tag in tagger.classes_}  # fmt: skip
    keys = np.unique(np.concatenate([extractor.keys(story.tokens, story.sentence_offsets)[1] for story in STORIES]))
    _, entries = weights.entries_of(keys)
    for k, tag in enumerate(tagger.classes_):
        among = weights.entry_weights[entries][weights.entry_tags[entries] == k]
        largest = sorted(among[np.argsort(-np.abs(among), kind="stable")[:3]].tolist(), reverse=True)
        assert own[tag] == pytest.approx(largest)
    transitions = [weight for kind, *_, weight in table.rows if kind == "transition"]
    assert max(map(abs, transitions)) == pytest.approx(np.abs(weights.transition).max())
    assert table.to_frame().shape == (len(table.rows), 4)
    assert table._repr_html_().count("<tr>") == len(table.rows) + 1
    with pytest.raises(ValueError, match="top must be a whole number of at least 1"):
        tagger.explain_weights(STORIES, top=0)


def test_nothing_is_changed_by_explaining(tagger: Tagger) -> None:
    before = tagger.tag(ARTICLE)
    tagger.explain(ARTICLE)
    assert tagger.tag(ARTICLE) == before


# --- confidences


def test_confidences_are_those_with_and_without_links(tagger: Tagger) -> None:
    found = tagger.explain(ARTICLE, name="winam")
    assert [each.mention.label for each in found] == ["ORG"] * 4
    # Calibrated, what is said of a name also depends on which others are found, and so on the links.
    raw = Tagger.from_model(replace(tagger.model_, calibration=None))
    first = raw.explain(ARTICLE, name="winam")[0]
    alone = {entity.start: entity for entity in raw.tag(ARTICLE, links=False).entities}
    assert first.confidence_without_links == pytest.approx(alone[first.mention.start].confidence)
    for each in found[1:]:
        assert each.confidence_without_links < each.mention.confidence
    for each in tagger.explain(ARTICLE, links=False):
        assert each.confidence_without_links == each.mention.confidence
        assert each.total("link") == 0


# --- what is said


def sayings(explanation: Explanation) -> dict[str, float]:
    return {str(part): part.value for part in explanation.parts}


def test_links_and_transitions_are_said_with_what_stands_at_their_ends(tagger: Tagger) -> None:
    short = tagger.explain(ARTICLE, name="Winam")[2]
    said = sayings(short)
    assert said["link to 'Winam' in sentence 4, tagged ORG (same-word)"] > 0
    assert said["transition from 'to' (no name) to 'Winam' (ORG)"] < 0
    full = sayings(tagger.explain(ARTICLE, name="Winam Ferries Ltd.")[0])
    assert "transition inside ORG from 'Winam' to 'Ferries'" in full
    assert "link to 'Winam' in sentence 14, tagged ORG (same-word)" in full


PLACES = {
    "word[-1]": "the word before is 'at'", "word[1]": "the word after is 'Reuters'",
    "word[-2]": "at most one word stands before it in the sentence",
    "lower[0]": "the word is 'paris', ignoring case",
    "shape[0]": "the word looks like Xxxxx", "brief_shape[0]": "the word looks like Xx",
    "prefix3[0]": "the word begins with 'par-'", "suffix2[0]": "the word ends in '-is'",
    "class20[0]": "the word has the word class of Reuters",
    "vector512[0]": "the word occurs in similar texts as Reuters", "gazetteer:city[0]": "the word is in the list city",
    "run[0]": "the word is the first of 2 capitalised words in a row",
    "run_last[0]": "the word is in a run of capitalised words that ends with 'Reuters'",
    "run_before[0]": "the word is in a run of capitalised words that comes after 'at'",
    "run_after[0]": "the word is in a run of capitalised words that comes before '1998'",
    "casing[0]": "the word is capitalised (elsewhere too)", "bias[0]": "how common the label is",
    "word[-1]|brief_shape[0]": "the word before is 'at' and the word looks like Xx",
    "digits[2]": "the second word after is '0000' with any digits",
}  # fmt: skip


@pytest.mark.parametrize("template", PLACES)
def test_each_feature_has_words_of_its_own(template: str) -> None:
    """A model of one feature, whose weight is all that speaks for the label."""
    plan = FeaturePlan((template,), gazetteers=LISTS.names)
    document = Document.from_tokens([["at", "Paris", "Reuters", "1998"], ["of", "Paris", "."]])
    vectors = vector_classes({"paris": 0, "reuters": 1}, np.array([[1, 2, 3], [1, 2, 3]]))
    lexicon = Lexicon(CLASSES, LISTS, vectors)
    starts, keys = make_extractor(plan, lexicon).keys(document.tokens, document.sentence_offsets)
    assert starts[2] - starts[1] == 1
    key = keys[starts[1] : starts[2]]
    weights = ChainWeights(
        ("O", "S-LOC"), np.zeros((2, 2)), key, np.array([0, 1], np.uint32), np.array([1], np.uint8), np.array([2.5])
    )
    tagger = Tagger.from_model(TaggerModel(weights, plan, lexicon))
    found = tagger.explain(document)
    assert sayings(found[0]) == {PLACES[template]: 2.5}
    assert found[0].log_odds == 2.5


def test_words_beside_other_occurrences_are_said_with_their_sentence() -> None:
    plan = FeaturePlan(("bias[0]",), ("lower", "shape"), 2)
    document = Document.from_tokens([["at", "Paris", "."], ["to", "Paris", "said"]])
    starts, keys = make_extractor(plan, Lexicon()).keys(document.tokens, document.sentence_offsets)
    own = np.unique(keys[starts[1] : starts[2]])
    weights = ChainWeights(
        ("O", "S-LOC"), np.zeros((2, 2)), own, np.arange(6, dtype=np.uint32), np.ones(5, np.uint8), np.full(5, 0.5)
    )
    (first, *_) = Tagger.from_model(TaggerModel(weights, plan)).explain(document, name="Paris")
    assert set(sayings(first)) == {
        "how common the label is",
        "also in sentence 2, after 'to'",
        "also in sentence 2, after a word that looks like xx ('to')",
        "also in sentence 2, before 'said'",
        "also in sentence 2, before a word that looks like xxxx ('said')",
    }


def test_every_attribute_has_words() -> None:
    assert set(PREDICATES) == {*TYPE_ATTRIBUTES, *POSITION_ATTRIBUTES, "gazetteer"}


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12))
@examples(200)
def test_shapes_are_those_of_the_features(word: str) -> None:
    plan = FeaturePlan(("word[0]",))
    attributes = make_extractor(plan, Lexicon()).origins([word], np.array([0, 1]), np.array([0]))[-1][0]
    if attributes[TYPE_ATTRIBUTES.index("word")] == hash_string(word):  # not written in typewriter's signs
        assert attributes[TYPE_ATTRIBUTES.index("shape")] == hash_string(brief(word, 4))
        assert attributes[TYPE_ATTRIBUTES.index("brief_shape")] == hash_string(brief(word, 1))


@pytest.mark.slow
@given(sentences)
@examples(60)
def test_origins_are_the_keys_with_their_templates(sentences) -> None:
    """The key of a feature is that of a plan which has its template alone."""
    tokens = [token for sentence in sentences for token in sentence]
    offsets = np.cumsum([0, *map(len, sentences)])
    lexicon = Lexicon(CLASSES, LISTS)
    extractor = make_extractor(PLAN, lexicon)
    starts, keys = extractor.keys(tokens, offsets)
    chosen = np.arange(len(tokens))[::-1].copy()
    own_starts, own_keys, origins, _ = extractor.origins(tokens, offsets, chosen)
    numbered = PLAN.compiled_templates()
    for row, token in enumerate(chosen.tolist()):
        own = slice(*own_starts[row : row + 2].tolist())
        np.testing.assert_array_equal(own_keys[own], keys[starts[token] : starts[token + 1]])
        for key, (template, place) in zip(own_keys[own].tolist(), origins[own].tolist(), strict=True):
            assert key in keys_of_one(
                numbered[template], tokens, offsets, token if numbered[template].side is None else place
            )


def keys_of_one(template, tokens, offsets, place) -> list[int]:
    """Keys of a plan that has one template."""
    written = "|".join(f"{PLAN.attributes[column]}[{offset}]" for column, offset in template.items)
    if template.side is None:
        plan, token = FeaturePlan((written,), gazetteers=PLAN.gazetteers), place
        starts, keys = make_extractor(plan, Lexicon(CLASSES, LISTS)).keys(tokens, offsets)
        return keys[starts[token] : starts[token + 1]].tolist()
    plan = FeaturePlan((), (PLAN.attributes[template.items[0][0]],), PLAN.n_occurrences)
    beside = place + (1 if template.side == "left" else -1)  # an occurrence of the token, seen from another
    starts, keys = make_extractor(plan, Lexicon(CLASSES, LISTS)).keys(tokens, offsets)
    groups = [t for t, word in enumerate(tokens) if word.lower() == tokens[beside].lower() and t != beside]
    return [key for t in groups for key in keys[starts[t] : starts[t + 1]].tolist()]


# --- the value


def test_the_rest_is_summed_up_and_json_holds_it_all(tagger: Tagger) -> None:
    (each, *_) = tagger.explain(ARTICLE, name="Winam")
    assert len(each.top()) == len(each.parts) > 100
    short = each.top(5)
    assert len(short) == 6
    assert short[:5] == list(each.parts[:5])
    assert short[5].words == f"{len(each.parts) - 5} smaller parts"
    assert math.fsum(part.value for part in short) == pytest.approx(each.log_odds, abs=1e-9)
    assert [abs(part.value) for part in each.parts] == sorted((abs(part.value) for part in each.parts), reverse=True)
    values = json.loads(json.dumps(each.to_dict(5), allow_nan=False))
    assert values["text"] == "Winam Ferries Ltd."
    assert values["log_odds"] == each.log_odds
    assert sum(values["totals"].values()) == pytest.approx(each.log_odds)
    assert [part["value"] for part in values["parts"]] == [part.value for part in short]


# --- bad input


def test_names_that_are_not_there_and_labels_that_do_not_exist(tagger: Tagger) -> None:
    for name, message in (
        ("Nairobi", "'Nairobi' is not in the text"),
        ("pier", "'pier' is in the text, but not tagged as a name"),
    ):
        with pytest.raises(NoSuchName, match=f"^{message}$"):
            tagger.explain(ARTICLE, name=name)
    with pytest.raises(ValueError, match="must contain a word"):
        tagger.explain(ARTICLE, name="  ")
    with pytest.raises(ValueError, match=r"no label 'Town'; expected best or one of LOC, ORG, PER"):
        tagger.explain(ARTICLE, against="Town")
    assert tagger.explain("nothing here.") == tagger.explain("") == []


@pytest.mark.parametrize("options", [{}, {"links": False}, {"backend": "gibbs", "n_sweeps": 20}])
def test_the_steps_of_the_confidence_add_up(options: dict[str, object]) -> None:
    text = "Winam Ferries Ltd. sank. Winam was sold. Nairobi bought Winam."
    for calibrated in (True, False):
        tagger = herdner.load("en", calibrated=calibrated)
        for each in tagger.explain(text, **options):
            assert [step.name for step in each.steps] == ["model", "links", "calibration"]
            confidence = each.mention.confidence
            assert each.steps[-1].probability == confidence
            odds = sum(step.log_odds for step in each.steps)
            assert odds == pytest.approx(math.log(confidence / (1 - confidence)))
            if not calibrated:  # the first two steps are computed again, and must agree with the tagger
                assert each.steps[-1].log_odds == pytest.approx(0, abs=1e-6)
            if options.get("links") is False:
                assert each.steps[1].log_odds == pytest.approx(0, abs=1e-9)
