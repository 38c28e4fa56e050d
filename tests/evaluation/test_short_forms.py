"""Short forms of names, by hand and against their definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from herdner.evaluation.consistency import count_short_forms, find_short_forms
from herdner.text.document import Document
from herdner.text.tags import Span, spans_from_tags

TAGS = ["O", "B-ORG", "I-ORG", "B-PER", "I-PER"]


def test_short_forms_by_hand():
    """Winam and Odera count after Winam Ferries Ltd. and Grace Odera. Ferries and the first Odera do not."""
    sentences = [
        ["Odera", "left", "Winam", "Ferries", "Ltd."],
        ["Winam", "and", "Ferries", "mourn", "Grace", "Odera"],
        ["Odera", "owned", "Winam"],
    ]
    tags = [
        ["B-PER", "O", "B-ORG", "I-ORG", "I-ORG"],
        ["B-ORG", "O", "B-ORG", "O", "B-PER", "I-PER"],
        ["B-PER", "O", "B-ORG"],
    ]
    gold = Document.from_tokens(sentences, tags)
    assert list(find_short_forms(gold)) == [Span(5, 6, "ORG"), Span(11, 12, "PER"), Span(13, 14, "ORG")]
    assert list(find_short_forms(gold, {"ORG": -1})) == []
    tags[1][0], tags[2][0] = "B-LOC", "O"
    found = count_short_forms([gold, gold], [gold, Document.from_tokens(sentences, tags)])
    assert {label: (row.n, row.n_correct) for label, row in found.items()} == {"ORG": (4, 3), "PER": (2, 1)}
    assert found["ORG"].share_correct == 0.75
    assert count_short_forms([], [])["ORG"].share_correct == 0


def test_words_are_separated_by_white_space():
    text = "Coca-Cola Bottlers sued; Coca-Cola won"
    tokens = ["Coca", "-", "Cola", "Bottlers", "sued", ";", "Coca", "-", "Cola", "won"]
    document = Document.from_aligned(text, [tokens]).with_spans([Span(0, 4, "ORG"), Span(6, 9, "ORG")])
    assert list(find_short_forms(document)) == [Span(6, 9, "ORG")]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(TAGS)), max_size=12))
def test_short_forms_agree_with_brute_force(pairs):
    document = Document.from_tokens([[word for word, _ in pairs]], [[tag for _, tag in pairs]])
    spans = spans_from_tags([tag for _, tag in pairs], document.sentence_offsets)

    def shortens(short: Span, long: Span) -> bool:
        word = document.tokens[long.start if long.label == "ORG" else long.end - 1]
        return (
            long.end <= short.start
            and long.label == short.label
            and long.end - long.start > 1 == short.end - short.start
            and document.tokens[short.start] == word
        )

    expected = [span for span in spans if any(shortens(span, long) for long in spans)]
    assert list(find_short_forms(document)) == expected
    same = document.with_spans(spans)  # predicted tags are read strictly
    assert all(row.n == row.n_correct for row in count_short_forms([document], [same]).values())
