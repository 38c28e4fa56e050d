"""The scripts that measure names by every backend, on a small model of our own corpus."""

from __future__ import annotations

import json

import hg16_fig11
import ner_f1
import numpy as np
import pytest
from data import REPOSITORY
from papers.ner_decoding import (
    Method,
    Row,
    Scored,
    falling_temperature,
    measure,
    of_the_paper,
    of_the_registry,
    sampling,
)

from herdner.corpora.reading import read
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.scores import evaluate
from herdner.inference.registry import BACKENDS
from herdner.ner.tagger import Tagger

CORPUS = REPOSITORY / "corpora" / "herdner_news.dev.conll"
TEXT = "Ada Lovelace met Charles Babbage in London.\n\nLovelace worked for Acme Ltd. in Paris & <Rome>."


@pytest.fixture(scope="module")
def documents():
    return list(read(f"{CORPUS}:conll"))


@pytest.fixture(scope="module")
def tagger(news_tagger):
    return news_tagger


@pytest.fixture(scope="module")
def scored(tagger, documents):
    few = Scored.of(tagger, documents[:8])
    assert few.n_links
    return few


def test_the_temperature_falls_to_almost_nothing():
    np.testing.assert_allclose(1 / falling_temperature(4).betas(4), [1, 0.75, 0.5, 0.25])


def test_scores_are_those_of_the_tagger(tagger, documents, scored):
    plain = [d.without_annotation() for d in documents[:8]]
    found = list(tagger.pipe(plain, backend="sum-product"))
    states = scored.decode(Method("", "sum-product").make())
    assert scored.f1(states) == pytest.approx(100 * evaluate(documents[:8], found).micro.f1)
    chain = Tagger.from_model(tagger.model_, links=False)
    expected = 100 * evaluate(documents[:8], list(chain.pipe(plain))).micro.f1
    for apart in (False, True):
        states = scored.chain(apart).decode(Method("", "viterbi").make())
        assert scored.f1(states) == pytest.approx(expected)


@pytest.mark.slow
def test_a_sampler_keeps_the_best_path_it_begins_with(scored):
    chain = scored.chain(apart=True)
    best = measure(chain, Method("Viterbi", "viterbi"), "random", [0], 1)
    assert (best.start, best.sd, len(best.f1)) == ("-", 0.0, 1)
    for method in of_the_paper([3])[:-1]:
        from_best, anywhere = (measure(chain, method, start, [0, 1], 1) for start in ("viterbi", "random"))
        assert from_best.log_potential == pytest.approx((best.log_potential[0],) * 2)
        assert from_best.f1 == best.f1 * 2
        assert max(anywhere.log_potential) < best.log_potential[0]


def test_without_constraints_annealing_finds_the_best_path(tagger, documents):
    """Test the comparison of HG16 with a scheme of one tag for each label."""
    free = Tagger(scheme="iob1", constrained=False, max_iterations=15, templates=(linear_chain_template(),))
    chain = Scored.of(free.fit(documents), documents[:8]).chain(apart=True)
    best = measure(chain, Method("Viterbi", "viterbi"), "random", [0], 1)
    gaps = []
    for n in (2, 200):
        row = measure(chain, sampling("a", "annealed-gibbs", n), "random", [0], 1)
        gaps.append(best.log_potential[0] - row.log_potential[0])
    assert -1e-6 < gaps[1] < gaps[0] / 10


@pytest.mark.slow
def test_every_backend_has_its_row_or_its_reason(scored, capsys):
    study = ner_f1.Study(["viterbi"], "sentence", [2], 3, [0], 1)
    found = study._table(scored, of_the_registry(3), "skip chain", "viterbi")
    rows = {row.method: row for row in found["rows"]}
    reasons = {note.partition(":")[0] for note in found["notes"]}
    assert set(BACKENDS) | {"blocked-gibbs, annealed"} == set(rows) | reasons
    assert reasons == {"viterbi"}
    best_chain = scored.log_potential(scored.chain().decode(Method("", "viterbi").make()))
    for name in ("gibbs", "herded-gibbs", "icm", "dogs"):  # they begin with the chain's best path and keep their best
        assert rows[name].log_potential[0] >= best_chain - 1e-6
    assert "| herded-gibbs | 3 | viterbi |" in capsys.readouterr().out


def test_claims_are_judged_by_the_numbers():
    def row(name, sweeps, f1):
        return Row(name, "random", sweeps, (f1, f1), (0.0, 0.0), 1.5)

    def rows(annealed, herded):
        return [row("annealed Gibbs", 800, annealed), row("herded Gibbs", 400, herded), row("Viterbi", None, 84.8)]

    held = ner_f1.claims(rows(84.6, 84.76))
    assert held == [
        "herded Gibbs, 400 sweeps: F1 -0.04 from Viterbi's, 1.50 s (within 0.05)",
        "annealed Gibbs, 800 sweeps: F1 -0.16, not above herded Gibbs at 400",
    ]
    other = ner_f1.claims(rows(84.8, 84.7))
    assert "not within" in other[0]
    assert other[1].endswith("+0.10, above herded Gibbs at 400")
    assert ner_f1.claims([row("gibbs", 400, 1.0)]) == []


@pytest.mark.slow
def test_a_quick_run_writes_tables_and_a_figure(tagger, tmp_path, capsys):
    small = tmp_path / "small.conll"
    lines = CORPUS.read_text(encoding="utf-8").splitlines(keepends=True)
    small.write_text("".join(lines[:400]), encoding="utf-8")
    tagger.save(tmp_path / "small.herdner")
    ner_f1.main(test=[f"{small}:conll"], model=str(tmp_path / "small.herdner"), quick=True, out=tmp_path)
    output = capsys.readouterr().out
    assert "| Viterbi |  | - |" in output
    tables = json.loads((tmp_path / "ner_f1.json").read_text())["results"][f"{small}:conll"]["tables"]
    assert all(row["seconds"] > 0 and 0 <= row["f1"][0] <= 100 for table in tables.values() for row in table["rows"])
    assert len(tables) == 3
    assert (tmp_path / "ner_f1.png").read_bytes().startswith(b"\x89PNG")


def test_one_text_side_by_side(tagger, tmp_path):
    tagger.save(tmp_path / "small.herdner")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    hg16_fig11.main(
        text=tmp_path / "text.txt", model=str(tmp_path / "small.herdner"), start="viterbi", quick=True, out=tmp_path
    )
    page = (tmp_path / "hg16_fig11.html").read_text(encoding="utf-8")
    assert page.count("<article") == 4
    assert page.index("grid-auto-flow: column") < page.index("<body")
    assert "&lt;Rome" in page
    output = json.loads((tmp_path / "hg16_fig11.json").read_text())["results"]["differences"]
    assert [line.partition(":")[0] for line in output] == ["annealed Gibbs", "herded Gibbs", "Viterbi", "skip chain"]
    assert all("the same as Viterbi" in line for line in output[:3])
    assert (tmp_path / "hg16_fig11.png").read_bytes().startswith(b"\x89PNG")


def test_lines_of_the_figure_hold_every_token(tagger):
    document = tagger.tag(TEXT * 3)
    places = list(hg16_fig11.placed(document))
    assert [token for _, _, token, _ in places] == list(document.tokens)
    assert all(column + len(token) <= hg16_fig11.WIDTH for _, column, token, _ in places)
    lines = [line for line, *_ in places]
    assert lines == sorted(lines)
    assert lines[0] == 0 < lines[-1]
