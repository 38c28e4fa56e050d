"""Documents to annotate next: uncertainty by its definition, and the greedy order against one without a heap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner import Tagger
from herdner.ner.suggesting import greedy_order, suggest, token_uncertainty
from herdner.text.tags import split_tag

WORTHS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1).map(lambda x: round(x, 3)), max_size=5)


@given(found=st.lists(WORTHS, max_size=7), data=st.data())
def test_the_order_is_that_of_the_plain_greedy_choice(found, data):
    costs = [data.draw(st.sampled_from([1.0, 2.0, 3.0])) for _ in found]
    known, left, expected = {}, list(range(len(found))), []

    def gain(i):
        return sum(max(0.0, worth - known.get(word, 0.0)) for word, worth in found[i].items())

    while left:
        best = min(left, key=lambda i: (-gain(i) / costs[i], i))
        expected.append((best, gain(best)))
        left.remove(best)
        for word, worth in found[best].items():
            known[word] = max(worth, known.get(word, 0.0))
    assert greedy_order(found, costs) == expected
    total = sum(max(words.get(word, 0.0) for words in found) for word in {w for words in found for w in words})
    assert sum(gain for _, gain in expected) == pytest.approx(total)


def test_doubt_is_the_margin_or_what_links_disagree_about(news_tagger: Tagger):
    document = news_tagger.tag("Winam rose. Winam Ferries Ltd. said that Winam, a town, was glad of Winam's gain.")
    (marginals,) = news_tagger.predict_marginals([document], links=False)
    classes = [split_tag(label)[1] for label in news_tagger.classes_]
    expected = []
    links = [tuple(pair) for ends in news_tagger.find_links(document).values() for pair in ends.tolist()]
    assert links
    for t, row in enumerate(marginals):
        best, second = sorted(row)[::-1][:2]
        uncertainty = 1 - (best - second)
        for pair in links:
            if t in pair:
                sides = [
                    {c: sum(p for p, o in zip(marginals[s], classes, strict=True) if o == c) for c in classes}
                    for s in pair
                ]
                uncertainty = max(uncertainty, sum(abs(sides[0][c] - sides[1][c]) for c in sides[0]) / 2)
        expected.append(uncertainty)
    found = token_uncertainty(news_tagger, document)
    assert found == pytest.approx(np.array(expected))
    assert 0 <= found.min() <= found.max() <= 1


def test_what_is_suggested_is_every_document_once_and_copies_come_last(news_tagger: Tagger):
    texts = ["Rain.", "Winam beat Ahero in Kisumu.", "Winam beat Ahero in Kisumu.", "", "Ms Okoth met Mr Lim in Oslo."]
    found = suggest(news_tagger, texts)
    assert sorted(each.document.text for each in found) == sorted(text for text in texts if text)
    copies = [each for each in found if each.document.text == texts[1]]
    assert copies[0].gain > copies[1].gain == 0
    assert [uncertainty for _, uncertainty in found[0].uncertain_words] == sorted(
        (d for _, d in found[0].uncertain_words), reverse=True
    )
    assert suggest(news_tagger, []) == []
