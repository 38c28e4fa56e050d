"""Names that the user knows: read, found and weighed, against brute force, enumeration and spaCy's entity ruler."""

from __future__ import annotations

import gzip
import io
import itertools
import math
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from data import ELSEWHERE
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

import herdner
from herdner import Document, FormatError, Names, Tagger
from herdner.crf.model import SkipChainModel
from herdner.ner.known_names.evidence import SpanEncoder, SpanEvidence
from herdner.ner.known_names.finder import Finder
from herdner.ner.known_names.trie import Trie, tokenizations
from herdner.text.tags import SCHEMES, Span, allowed_transitions, spans_from_states, tags_from_spans

INF = math.inf
TAGS = ("O", "B-ORG", "I-ORG", "E-ORG", "S-ORG", "B-PER", "I-PER", "E-PER", "S-PER")
CORPORA = Path(__file__).parents[2] / "corpora"
TEXTS = ["Winam lost. Mr Kibo met Washington in Oslo. Winam won.", "", "Oslo is far.", "Kibo said so."] * 5
KNOWN = [("Winam", "ORG"), ("Kibo", "LOC", INF), {"label": "ORG", "pattern": [{"LOWER": "oslo"}, {"LOWER": "is"}]}]


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return herdner.load("en")


def finder(names: Names, scheme="iobes", tags: tuple[str, ...] = TAGS) -> Finder:
    return Finder(names, tags, scheme, str.split, "en")


def found(documents) -> list[tuple]:
    return [(document.text, document.tags, document.entities) for document in documents]


# --- reading


def entries(content: str | bytes) -> list[tuple]:
    data = content.encode() if isinstance(content, str) else content
    return [(entry.pattern, entry.label, entry.strength) for entry in Names.read(io.BytesIO(data)).entries]


def test_commas_and_semicolons_separate_a_label_in_capitals():
    text = 'Winam Ferries,ORG\n"Smith, John", PER, 2.5\nKibo; PER; hard\nOslo\tLOC\nRose, Ltd.\tORG\n'
    text += "Acme, Inc.,ORG\nSmith, Kline, French; ORG; 2\nAcme, LLC, ORG\nKibo,LOC,INF\n"
    assert entries(text) == [
        ("Winam Ferries", "ORG", None), ("Smith, John", "PER", 2.5), ("Kibo", "PER", INF), ("Oslo", "LOC", None),
        ("Rose, Ltd.", "ORG", None), ("Acme, Inc.", "ORG", None), ("Smith, Kline, French", "ORG", 2.0),
        ("Acme, LLC", "ORG", None), ("Kibo", "LOC", INF),
    ]  # fmt: skip
    for line in ("Smith, John\n", "Winam Ferries\n", '"a", b, ORG\n', '"Kibo, PER\n', ", PER\n"):
        with pytest.raises(FormatError, match=r":1: no tab in .* such as ORG\.txt"):
            entries(line)


def test_names_without_label_in_a_file_that_is_named_after_the_label(tmp_path):
    for name in ("ORG.txt", "ORG.tsv.gz"):
        content = b"# ours\nWinam Ferries\nAcme, LLC\nKibo Bank, ORG\nOslo\tLOC\n"
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        found_entries = [(entry.pattern, entry.label) for entry in Names.read(tmp_path / name).entries]
        assert found_entries == [("Winam Ferries", "ORG"), ("Acme, LLC", "ORG"), ("Kibo Bank", "ORG"), ("Oslo", "LOC")]
    (tmp_path / "org.txt").write_text("Winam Ferries\n")
    with pytest.raises(FormatError, match="no tab"):
        Names.read(tmp_path / "org.txt")


def test_columns():
    text = "\ufeff# mine\nWinam Ferries\tORG\n\n  Kibo \t PER\t2.5\r\n#1 Club\tORG\thard\nOslo\tLOC\t\n"
    expected = [
        ("Winam Ferries", "ORG", None), ("Kibo", "PER", 2.5), ("#1 Club", "ORG", INF), ("Oslo", "LOC", None)
    ]  # fmt: skip
    assert entries(text) == expected
    assert entries(gzip.compress(text.encode())) == expected


def test_the_first_line_may_be_a_header():
    for header in ("name,label", '"Name";"Label";"Strength"', "Name\tLabel\tStrength", "\ufeffname, label , strength"):
        assert entries(f"{header}\nOslo,LOC\n") == [("Oslo", "LOC", None)], header
    with pytest.raises(FormatError, match=r":2: no tab in 'name,label'"):
        entries("Oslo,LOC\nname,label\n")
    with pytest.raises(FormatError, match="contains no names"):
        entries("name,label\n")


def test_what_spacys_entity_ruler_writes(tmp_path):
    patterns = [
        {"label": "ORG", "pattern": "Winam Ferries", "id": "w"},
        {"label": "PER", "pattern": [{"LOWER": "kibo"}, {"IS_TITLE": True, "OP": "?"}]},
    ]
    ruler = spacy.blank("en").add_pipe("entity_ruler")
    ruler.add_patterns(patterns)
    ruler.to_disk(tmp_path / "patterns.jsonl")
    names = Names.read(tmp_path / "patterns.jsonl")
    assert sorted(str(entry.pattern) for entry in names.entries) == sorted(str(each["pattern"]) for each in patterns)
    names.save(tmp_path / "again.jsonl")
    assert [entry[:3] for entry in Names.read(tmp_path / "again.jsonl").entries] == [e[:3] for e in names.entries]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": the file contains no names; expected a name, a tab and a label"),
        ("# only a comment\n\n", ": the file contains no names"),
        ("Winam\tORG\nKibo\n", r":2: no tab in 'Kibo'; expected a name, a tab and a label"),
        ("Winam\tORG\nKibo\t\n", ":2: no label; expected a label such as ORG"),
        ("\tORG\n", ":1: no name; expected a name"),
        ("Winam\tORG\t1\tmore\n", ":1: 4 columns in"),
        ("Winam\tBIG ORG\n", ":1: the label 'BIG ORG' is not a single word"),
        ("Winam\tORG\tstrong\n", ":1: the strength 'strong' is not a number; expected log-odds such as 3, or hard"),
        ("Winam\tORG\tnan\n", ":1: the strength 'nan' is not a number"),
        ('{"label": "ORG", "pattern": "Winam"}\n{"pattern": "Kibo"}\n', ":2: no label"),
        ('{"label": "ORG"}\n', ":1: no name; expected a name, or a token pattern"),
        ('{"label": "ORG", "pattern": []}\n', ":1: no name"),
        ('{"label": "ORG", "pattern": 3}\n', ":1: the pattern 3 is invalid"),
        ('{"label": "ORG", "pattern": "Winam", "lable": 1}\n', ":1: unknown key 'lable'; expected label, pattern"),
        ('{"label": "ORG", "pattern": "Winam"}\nKibo\tPER\n', ":2: not JSON"),
        ('{"label": "ORG", "pattern": "Winam"}\n[1]\n', ":2: expected a JSON object, got a list"),
        (b"Winam\tORG\nKib\xe9\tPER\n", ":2: not valid utf-8; save the names as utf-8$"),
        (b"\x1f\x8b\x08\x00damaged", "damaged gzip file"),
    ],
)
def test_a_file_that_is_none_is_one_line(content, message, tmp_path):
    path = tmp_path / "names.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(FormatError, match=message) as caught:
        Names.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


LINE = st.one_of(
    st.binary(max_size=20),
    st.text(st.sampled_from('\t{}[]":, aORG1#\u00e9'), max_size=20).map(str.encode),
    st.sampled_from(
        [b'{"label": "ORG", "pattern": "a"}', b"a\tORG", b'{"label": 1, "pattern": {}}', b"[" * 9999, b"{"]
    ),
)


@given(st.lists(LINE, max_size=4).map(b"\n".join))
def test_any_bytes_are_names_or_one_line(content):
    try:
        names = Names.read(io.BytesIO(content))
    except FormatError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert all(entry.label.split() == [entry.label] and entry.pattern for entry in names.entries)
        names.save(again := io.BytesIO())
        again.seek(0)
        assert [entry[:3] for entry in Names.read(again).entries] == [entry[:3] for entry in names.entries]


def test_values_that_are_no_names(tagger, tmp_path):
    for values in (3, b"Winam", {"label": "ORG", "pattern": "Winam"}):
        with pytest.raises(ValueError, match="names must be a file, or a list"):
            Names.of(values)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name 2: 3 is not a name"):
        Names.of([("Winam", "ORG"), 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="needs at least one name"):
        Names.of([])
    with pytest.raises(ValueError, match=r"entries must be KnownName values, got \('Winam', 'ORG'\)"):
        Names((("Winam", "ORG"),))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="strength must be a number"):
        Names.of([("Winam", "ORG")], strength=math.nan)
    with pytest.raises(ValueError, match="hard must be true or false, got 'false'"):
        Names.of([("Winam", "ORG")], hard="false")
    with pytest.raises(FormatError, match="is a folder; give a file"):
        Names.read(tmp_path)
    with pytest.raises(FormatError, match=r"\*\.tsv: no such file"):
        Names.read(tmp_path / "*.tsv")
    with pytest.raises(FormatError, match="no such file"):
        tagger.tag("Winam", names=tmp_path / "none.tsv")
    with pytest.raises(ValueError, match="name 1: the model has no label 'PERSON'; it has LOC, ORG, PER"):
        tagger.tag("Winam", names=[("Ada", "PERSON")])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ([{"POS": "PROPN"}], "name 1: the attribute POS needs a spaCy pipeline; use one of ORTH, TEXT"),
        ([{"LOWER": 3}], "name 1: spaCy cannot read this pattern"),
        ([{"OP": "often"}], "name 1: spaCy cannot read this pattern"),
        ([{"TEXT": {"REGEX": "("}}], "name 1: spaCy cannot read this pattern"),
    ],
)
def test_patterns_that_spacy_cannot_read(pattern, message, tagger):
    with pytest.raises(ValueError, match=message) as caught:
        tagger.finder([{"label": "ORG", "pattern": pattern}])
    assert "\n" not in str(caught.value)


# --- finding


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=6),
    st.lists(st.sampled_from("abcd"), max_size=12),
)
def test_a_trie_finds_what_brute_force_finds(phrases, tokens):
    trie = Trie()
    for number, phrase in enumerate(phrases):
        trie.add(phrase, number)
    got = {(start, end, value) for start, end, values in trie.matches(tokens) for value in values}
    expected = {
        (start, start + len(phrase), number)
        for number, phrase in enumerate(phrases)
        for start in range(len(tokens))
        if tokens[start : start + len(phrase)] == phrase
    }
    assert got == expected


class Counted(str):
    hashed = 0

    def __hash__(self) -> int:
        Counted.hashed += 1
        return super().__hash__()


def test_the_length_of_the_list_costs_no_time():
    """Test that ten thousand names need as many look-ups of tokens as ten: the time depends on the text only."""
    text = [f"w{i % 7}" for i in range(500)]
    looked_up = []
    for n in (10, 10_000):
        trie = Trie()
        for i in range(n):
            trie.add([f"w{i % 5}", f"x{i}", "y"], i)
        Counted.hashed = 0
        assert list(trie.matches([Counted(token) for token in text])) == []
        looked_up.append(Counted.hashed)
    assert looked_up[0] == looked_up[1] <= 3 * len(text)


def test_readings_of_names_in_documents_that_came_with_tokens():
    assert set(tokenizations("Moody's Inc.")) == {
        ("Moody's", "Inc."), ("Moody", "'s", "Inc."), ("Moody's", "Inc", "."), ("Moody", "'s", "Inc", ".")
    }  # fmt: skip
    assert ("Coca", "-", "Cola") in tokenizations("Coca-Cola")
    assert set(tokenizations(" Winam  Ferries")) == {("Winam", "Ferries")}
    assert len(list(tokenizations("a-b " * 30))) == 2


LOWER = st.sampled_from(["a", "b", "c"])
RULED = st.one_of(
    st.lists(LOWER, min_size=1, max_size=3).map(" ".join),
    st.lists(
        st.one_of(LOWER.map(lambda w: {"LOWER": w}), LOWER.map(lambda w: {"LOWER": w, "OP": "+"})),
        min_size=1, max_size=3,
    ),
)  # fmt: skip


@pytest.mark.slow
@examples(60)
@given(st.lists(RULED, min_size=1, max_size=4), st.lists(st.sampled_from(["a", "b", "c", "A", "d"]), max_size=10))
def test_constraints_are_what_spacys_entity_ruler_finds(patterns, tokens):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ORG", "pattern": pattern} for pattern in patterns])
    doc = ruler(spacy.tokens.Doc(nlp.vocab, words=tokens))
    names = Names.of([{"label": "ORG", "pattern": pattern} for pattern in patterns], hard=True)
    supports = finder(names).span_evidence(Document.from_tokens([tokens]), own_tokens=False)
    assert [each.span for each in supports] == [Span(e.start, e.end, "ORG") for e in doc.ents]


def spans_of(names: Names, *sentences: str) -> list[tuple]:
    document = Document.from_tokens([sentence.split() for sentence in sentences])
    supports = finder(names).span_evidence(document, own_tokens=True)
    return [(" ".join(document.tokens[s.start : s.end]), s.label, strength) for s, strength in supports]


def test_which_names_count():
    names = Names.of(
        [("New York", "PER"), ("New York Times", "ORG"), ("Times Square Park", "PER", 9), ("York", "PER", INF)]
    )
    assert spans_of(names, "the New York Times") == [("York", "PER", INF)]  # a constraint goes before evidence
    names = Names.of([("New York", "PER"), ("New York Times", "ORG"), ("York Times Co", "PER"), ("York", "ORG")])
    assert spans_of(names, "New York Times Co") == [("New York Times", "ORG", names.strength)]  # of two, the first
    assert spans_of(names, "New York", "Times") == [("New York", "PER", names.strength)]  # none crosses sentences
    both = [("Ada", "ORG", 1), ("Ada", "PER", 2), ("Ada", "PER", 5)]
    assert spans_of(Names.of(both), "Ada") == [("Ada", "ORG", 1), ("Ada", "PER", 5)]
    assert spans_of(Names.of(both, hard=True), "Ada") == [("Ada", "ORG", INF)]
    assert spans_of(Names.of([("Ada Lim", "PER")]), "ada LIM") == []
    assert [s[0] for s in spans_of(Names.of([("Ada Lim", "PER")], fold_case=True), "ada LIM", "ADA lim")] == [
        "ada LIM", "ADA lim"
    ]  # fmt: skip


# --- evidence


def random_spans(rng: np.random.Generator, offsets: list[int]) -> list[Span]:
    spans, token = [], 0
    while token < offsets[-1]:
        end = token + int(rng.integers(1, 4))
        if rng.random() < 0.5 and not any(token < border < end for border in offsets) and end <= offsets[-1]:
            spans.append(Span(token, end, str(rng.choice(["ORG", "PER"]))))
            token = end
        else:
            token += 1
    return spans


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_constraints_come_out_exactly(scheme, constrained):
    """Whatever the scores say, in every scheme, side by side and at the borders of sentences."""
    prefixes = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}[scheme]
    tags = ("O", *(f"{prefix}-{label}" for label in ("ORG", "PER") for prefix in prefixes))
    allowed, rng = allowed_transitions(tags, scheme), np.random.default_rng(3)
    nothing = np.zeros(len(tags))
    for _ in range(60):
        offsets = np.array([0, 3, 4, 9])
        spans = random_spans(rng, offsets.tolist())
        table = rng.normal(size=(len(tags), len(tags)))
        crf = SkipChainModel(table, nothing, nothing)
        if constrained:
            parts = (allowed.follow, table), (allowed.start, nothing), (allowed.end, nothing)
            crf = SkipChainModel(*(np.where(allows, values, -np.inf) for allows, values in parts))
        unary = 3 * rng.normal(size=(9, len(tags)))
        SpanEncoder(tags, scheme).evidence([SpanEvidence(span, INF) for span in spans], offsets).add_to(unary)
        states = crf.best_chain(unary, offsets)
        assert set(spans) <= set(spans_from_states(states, tags, offsets))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_evidence_adds_its_strength_for_each_tag_of_the_span(scheme):
    """Test by enumeration that a sequence gains the strength for each token that it tags like the span."""
    prefixes = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}[scheme]
    tags = ("O", *(f"{prefix}-ORG" for prefix in prefixes), f"{prefixes[-1]}-PER")
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(4, len(tags)))
    before = unary.copy()
    span = Span(1, 3, "ORG")
    supports = [SpanEvidence(span, 2.5), SpanEvidence(Span(3, 4, "LOC"), 7.0)]  # of LOC the model has no tag
    SpanEncoder(tags, scheme).evidence(supports, np.array([0, 4])).add_to(unary)
    right = tags_from_spans([span], 4, scheme)[1:3]
    for states in itertools.product(range(len(tags)), repeat=4):
        agree = sum(tags[state] == tag for state, tag in zip(states[1:3], right, strict=True))
        gain = sum(unary[t, s] - before[t, s] for t, s in enumerate(states))
        assert gain == pytest.approx(2.5 * agree)


def test_a_constraint_that_the_model_has_no_tag_for():
    spelling = SpanEncoder(("O", "S-ORG", "B-ORG", "E-ORG"), "iobes")
    with pytest.raises(ValueError, match="no tags for a known name of 3 tokens with the label ORG; its tags are O,"):
        spelling.evidence([SpanEvidence(Span(0, 3, "ORG"), INF)], np.array([0, 3]))


def test_a_strength_of_nothing_changes_nothing(tagger):
    """Bit for bit."""
    none = Names.of([("Winam", "ORG"), ("Oslo", "PER")], strength=0)
    assert found(tagger.pipe(TEXTS, names=none)) == found(tagger.pipe(TEXTS))


# --- tagging


def test_evidence_is_weighed_and_constraints_hold(tagger):
    text = "Mr Kibo met Washington in Oslo."

    def labels(**choices) -> dict[str, tuple[str, float]]:
        names = Names.of([("Kibo", "LOC"), ("Washington in", "ORG"), ("Oslo", "PER")], **choices)
        return {e.text: (e.label, e.confidence) for e in tagger.tag(text, names=names).entities}

    soft, weak, hard = labels(), labels(strength=0.5), labels(hard=True)
    assert soft["Kibo"][0] == weak["Kibo"][0] == "PER"  # "Mr" is clear
    assert soft["Oslo"][1] < weak["Oslo"][1]
    assert {name: label for name, (label, _) in hard.items()} == {"Kibo": "LOC", "Washington in": "ORG", "Oslo": "PER"}
    assert [confidence for _, confidence in hard.values()] == pytest.approx([1, 1, 1])


def test_links_carry_what_is_known_to_other_mentions(tagger):
    """A model whose links pull hard: "Kibo" becomes what "Kibo Bank" is said to be, and stays without links."""
    labels = [tag.partition("-")[2] for tag in tagger.classes_]
    table = 8.0 * np.array([[a == b for b in labels] for a in labels])
    linked = tuple(replace(each, table=table) for each in tagger.model_.link_tables[:1])
    pulling = Tagger.from_model(replace(tagger.model_, link_tables=linked, calibration=None))
    raw = Tagger.from_model(replace(tagger.model_, calibration=None))  # which looks at all names of a document
    text = "Kibo Bank lost. Later, Kibo left Oslo."
    for label in ("ORG", "PER", "LOC"):
        names = [("Kibo Bank", label, INF)]
        assert (23, label) in [(e.start, e.label) for e in pulling.tag(text, names=names).entities]
        alone = [raw.tag(text, names=known, links=False).entities[1:] for known in (names, None)]
        values = [[(e.start, e.end, e.label, e.confidence) for e in entities] for entities in alone]
        assert values[0] == values[1]


@pytest.mark.slow
@pytest.mark.parametrize("backend", [name for name in herdner.BACKENDS if name not in ("exact", "viterbi", "dogs")])
def test_constraints_hold_by_every_backend(tagger, backend):
    names = Names.of([("Washington", "ORG"), ("Mr Kibo", "LOC")], hard=True)
    document = tagger.tag(TEXTS[0], names=names, backend=backend)
    spans = {(e.text, e.label): e.confidence for e in document.entities}
    assert [spans["Washington", "ORG"], spans["Mr Kibo", "LOC"]] == pytest.approx([1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"n_jobs": 2}, {"n_jobs": 3, "batch_size": 2}])
def test_documents_in_batches_and_threads_are_as_each_alone(tagger, options):
    """Bit for bit: confidences too. Texts and documents with tokens."""
    sources = [*TEXTS, *herdner.read_documents(CORPORA / "herdner_news.dev.conll", "conll")]
    names = Names.of(KNOWN)
    alone = [tagger.tag(source, names=names) for source in sources]
    assert found(tagger.pipe(sources, names=names, **options)) == found(alone)
    assert found([tagger.tag(TEXTS[0], names=KNOWN)]) == found(alone[:1])


def test_a_tagger_that_has_found_names_can_be_copied(tagger):
    names = Names.of(KNOWN)
    before = tagger.tag(TEXTS[0], names=names)
    again, known = pickle.loads(pickle.dumps((tagger, names)))
    assert found([again.tag(TEXTS[0], names=known)]) == found([before])


def test_plain_names_in_given_tokens_need_no_spacy():
    code = (
        "import sys, herdner; from herdner import Document;"
        "d = herdner.load('en').tag(Document.from_tokens([['Coca-Cola', 'Ltd.', 'won']]), names=[('Coca-Cola Ltd.', 'PER', 'hard')]);"  # noqa: E501
        "print([e.label for e in d.entities], 'spacy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ELSEWHERE, capture_output=True, text=True, check=True)
    assert done.stdout == "['PER'] False\n"


# --- constraints and longer names


LONGER = [
    ("John Said met the press in Oslo.", [("John Said", "PER"), ("Oslo", "LOC")]),
    ("He reads the Washington Post.", [("Washington Post", "ORG")]),
    ("Yesterday New York Times Company rose.", [("New York Times Company", "ORG")]),
    ("John left Washington.", [("John", "PER"), ("Washington", "LOC")]),
]
SHORT = [("John", "PER"), ("Washington", "LOC"), ("New York", "LOC")]


@pytest.mark.parametrize("backend", [None, "icm"])
def test_constraints_do_not_cut_longer_names(tagger, backend):
    names = Names.of(SHORT, hard=True)
    for text, expected in LONGER:
        assert [(e.text, e.label) for e in tagger.tag(text, names=names, backend=backend).entities] == expected
    together = tagger.pipe([text for text, _ in LONGER], names=names)
    assert [[(e.text, e.label) for e in document.entities] for document in together] == [e for _, e in LONGER]


def test_constraints_hold_where_the_longer_name_is_cut_by_another_constraint(tagger):
    names = Names.of([*SHORT, ("Said met", "ORG")], hard=True)
    entities = [(e.text, e.label) for e in tagger.tag(LONGER[0][0], names=names).entities]
    assert entities == [("John", "PER"), ("Said met", "ORG"), ("Oslo", "LOC")]


def test_constraints_hold_without_a_longer_name(tagger):
    names = Names.of([("John Said", "ORG"), ("press", "LOC")], hard=True)
    document = tagger.tag(LONGER[0][0], names=names)
    assert [(e.text, e.label) for e in document.entities][:2] == [("John Said", "ORG"), ("press", "LOC")]
    assert [e.confidence for e in document.entities][:2] == pytest.approx([1, 1])


def test_explanations_have_the_evidence_of_tagging(tagger):
    text = "John Said met John in Washington."
    names = Names.of(SHORT, hard=True)
    mentions = tagger.explain(text, names=names)
    assert len(mentions) == len(tagger.tag(text, names=names).entities)


def test_a_list_that_begins_with_many_tabs_is_read_in_linear_time() -> None:
    began = time.process_time()
    with pytest.raises(FormatError):
        list(Names.read(io.BytesIO(b"name" + b"\t" * 50_000 + b"x\n")))
    assert time.process_time() - began < 10
