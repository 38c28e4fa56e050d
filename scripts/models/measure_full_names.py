"""Measure the rule that a full name decides the label of its short forms (`herdner.ner.identity.short_forms`).

    python scripts/models/measure_full_names.py --test ../shared/data/ner/ieer:ieer \
        --test ../shared/data/ner/conll2003/eng.testa:conll2003 --test ../shared/data/ner/worldwide/dev:worldwide

The output is a table of results without and with the rule: the share of correctly tagged short forms of invented
companies, the same share for persons and organisations in all test files, and the F1 on each test file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from measure_invented import are_right, filled_texts
from measure_short_forms import predict_short_forms

import herdner
from herdner.corpora.reading import read
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table, percent
from herdner.ner.decode import Decoder
from herdner.ner.identity import relabel_short_forms
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

SHORT_FORMS = {"PER": "surnames after a full name", "ORG": "short forms of organisations"}


def without_and_with(decoder: Decoder, documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Tag documents without and with the rule for full names."""
    without = [decoder.tag([document], None, None)[0] for document in documents]
    return without, list(map(relabel_short_forms, without))


def main(
    test: Annotated[list[str], typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")],
    model: Annotated[str, typer.Option(help="Name or file of a model.")] = "en",
    names: Annotated[int, typer.Option(min=1, help="Number of invented companies for each text.")] = 50,
) -> None:
    """Print a table of results without and with the rule."""
    trained = herdner.load(model).model_
    decoder, tokenizer = Decoder.of(trained), Tokenizer(trained.tokenizer)
    filled = filled_texts(names, 0, designator=False)
    companies = without_and_with(decoder, [tokenizer(each.text) for each in filled])
    shares = [percent(are_right(documents, filled).mean()) for documents in companies]
    rows = [[f"invented companies without designator ({len(filled)})", *shares]]
    corpora = [[d for d in read(source, core_labels=True, tokenizer=tokenizer) if d.n_tokens] for source in test]
    tagged = [without_and_with(decoder, documents) for documents in corpora]
    gold = [document for documents in corpora for document in documents]
    both = [[document for corpus in tagged for document in corpus[i]] for i in (0, 1)]
    for label, what in SHORT_FORMS.items():
        right = [predict_short_forms(what, gold, documents, label).right for documents in both]
        rows.append([f"{what} ({len(right[0])})", *(percent(each.mean()) for each in right)])
    for source, documents, corpus in zip(test, corpora, tagged, strict=True):
        f1 = [percent(evaluate(documents, predicted).micro.f1) for predicted in corpus]
        rows.append([f"F1 on {source.rpartition('/')[2]}", *f1])
    print(markdown_table(["", "without the rule", "with the rule"], rows))


if __name__ == "__main__":
    typer.run(main)
