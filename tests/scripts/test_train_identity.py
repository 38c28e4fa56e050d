"""The recipe of the identity model reads both corpora and learns weights from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from train_identity import cross_validated, decisions, learn, main, read_gum, read_litbank, string_match, word_match

from herdner.evaluation.coreference import clusters_of

SENTENCES = ["Ana Rivera met Bo Lim .", "Rivera left . Lim ran ."]
MENTIONS = [(0, 0, 0, 1, "a"), (0, 3, 0, 4, "b"), (1, 0, 1, 0, "a"), (1, 3, 1, 3, "b")]


@pytest.fixture
def litbank(tmp_path: Path) -> Path:
    for name in "123456":
        (tmp_path / f"{name}.txt").write_text("\n".join(SENTENCES) + "\n")
        lines = [f"MENTION\tT{i}\t{a}\t{b}\t{c}\t{d}\tx\tPER\tPROP" for i, (a, b, c, d, _) in enumerate(MENTIONS)]
        lines += ["MENTION\tT8\t1\t1\t1\t1\tx\tPER\tNOM", "MENTION\tT9\t1\t1\t1\t1\tx\tPER\tPROP"]
        lines += [f"COREF\tT{i}\t{chain}" for i, (*_, chain) in enumerate(MENTIONS)]
        (tmp_path / f"{name}.ann").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_litbank_gives_proper_names_with_a_chain(litbank: Path) -> None:
    document = next(read_litbank(litbank))
    assert [entity.text for entity in document.entities] == ["Ana Rivera", "Bo Lim", "Rivera", "Lim"]
    assert [entity.name_id for entity in document.entities] == [0, 1, 0, 1]


def test_gum_gives_spans_whose_head_is_a_proper_noun(tmp_path: Path) -> None:
    marks = [
        "(1-person-new-x-cf1-2-coref",
        "1)(2-place-new-x-cf1-1-sgl)",
        "(3-object-new-x-cf1-1-sgl)",
        "(1-person-giv-x-cf1-1-coref)",
    ]
    rows = [("the", "DT"), ("Rivera", "NNP"), ("car", "NN"), ("Ana", "NNP")]
    lines = [
        f"{i}\t{word}\t_\t_\t{tag}\t_\t_\t_\t_\tEntity={mark}"
        for i, ((word, tag), mark) in enumerate(zip(rows, marks, strict=True), 1)
    ]
    (tmp_path / "x.conllu").write_text("# newdoc\n" + "\n".join(lines) + "\n\n")
    (document,) = read_gum(tmp_path)
    assert [(entity.text, entity.label, entity.name_id) for entity in document.entities] == [
        ("the Rivera", "person", 0), ("Rivera", "place", 1), ("Ana", "person", 0),
    ]  # fmt: skip


def test_weights_make_the_right_decisions(litbank: Path) -> None:
    documents = list(read_litbank(litbank))
    made = [each for document in documents for each in decisions(document)]
    assert {each.right for each in made} == {1}
    weights = learn(made)
    assert all(sum(map(weights.get, each.rows[1])) > sum(map(weights.get, each.rows[0])) for each in made)
    predicted = cross_validated({"x": documents})["x"]
    assert list(map(clusters_of, predicted)) == list(map(clusters_of, documents))


def test_baselines(litbank: Path) -> None:
    document = next(read_litbank(litbank))
    assert [entity.name_id for entity in string_match(document).entities] == [0, 1, 2, 3]
    assert [entity.name_id for entity in word_match(document).entities] == [0, 1, 0, 1]


def test_the_table_has_three_methods(litbank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test_gum_gives_spans_whose_head_is_a_proper_noun(tmp_path)
    main(litbank, tmp_path)
    assert capsys.readouterr().out.count("| LitBank |") == 3
