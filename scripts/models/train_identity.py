"""Learn the weights of the identity model from annotated coreference, and measure it by cross-validation.

    python scripts/models/train_identity.py --litbank ../shared/data/ner/litbank --gum ../shared/data/ner/gum --write

Mentions are the proper names of LitBank (PROP, with a coreference chain) and the spans of GUM whose head is a proper
noun. The output is a table with the F1 of MUC, B-cubed, CEAF-e and LEA, and with the mean of the first three. The rows
are clusters of gold mentions by equal strings, by equal strings or first or last words, and by the model on files that
were not used for training (five folds). With ``--own``, the last row shows clusters of the mentions that the model
``en`` finds. ``--write`` learns from all files and writes ``herdner/data/identity.json``, ``nicknames.json`` from the
package nicknames 1.0.1 (Apache License 2.0), and ``genders.json`` from the package names 0.3.0 (MIT), which has the
first names of the US census of 1990.
"""

from __future__ import annotations

import csv
import importlib.resources
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse
import typer
from english_corpora import gum_entities
from numpy.typing import NDArray
from scipy.optimize import minimize

import herdner
from herdner._ext.identity import NameCluster, NameWeights
from herdner.evaluation.coreference import NameScores, evaluate_names
from herdner.evaluation.tabular import markdown_table
from herdner.ner.identity import with_names
from herdner.text.document import Document
from herdner.text.entity import Entity

FOLDS = 5
CLEAR_GENDER = 5  # a name has a gender if this gender has it five times as often as the other
ROUNDS = 2  # more rounds do not raise F1
L2 = 3e-5  # penalty of the squared weights, per decision
DATA = Path(__file__).parents[2] / "herdner" / "data"


class Decision(NamedTuple):
    """Decision about a mention: features of a new name and of each candidate, and the index of the correct row."""

    rows: list[list[str]]
    right: int


def named_document(tokens: Sequence[str], mentions: Sequence[tuple[int, int, str, str]], id: str) -> Document:
    """Return a document whose entities are the mentions, with the index of their coreference chain as `name_id`."""
    starts = np.cumsum([0, *(len(token) + 1 for token in tokens)]).tolist()
    text, chains = " ".join(tokens), dict[str, int]()
    entities = [
        Entity(
            starts[i], starts[j] - 1, label, text[starts[i] : starts[j] - 1], None, chains.setdefault(c, len(chains))
        )
        for i, j, label, c in sorted(mentions)
    ]
    return Document.from_text(text, id=id).with_proposals(entities)


def read_litbank(folder: Path) -> Iterator[Document]:
    """Yield the documents of LitBank with its proper names that are in a coreference chain."""
    for path in sorted(folder.glob("*.ann")):
        sentences = [line.split() for line in path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()]
        offsets = np.cumsum([0, *map(len, sentences)]).tolist()
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        chains = {line[1]: line[2] for line in lines if line[0] == "COREF"}
        mentions = [
            (offsets[int(line[2])] + int(line[3]), offsets[int(line[4])] + int(line[5]) + 1, line[7], chains[line[1]])
            for line in lines
            if line[0] == "MENTION" and line[8] == "PROP" and line[1] in chains
        ]
        yield named_document([token for sentence in sentences for token in sentence], mentions, path.stem)


def read_gum(folder: Path) -> Iterator[Document]:
    """Yield the documents of GUM with the spans whose head is a proper noun."""
    for path in sorted(folder.glob("*.conllu")):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
        rows = [row for row in rows if row[0].isdigit()]
        mentions = [
            (start, end, label, chain)
            for start, end, (chain, label, _, _, _, head, *_) in gum_entities(rows, is_whole=True)
            if rows[start + int(head.split(",")[0]) - 1][4] in ("NNP", "NNPS")
        ]
        yield named_document([row[1] for row in rows], mentions, path.stem)


def decisions(document: Document, weights: Mapping[str, float] | None = None) -> list[Decision]:
    """Return the decisions in a document, after earlier mentions were assigned to names by ``weights``.

    The correct candidate is the cluster with most mentions of the mention's gold name, among clusters at least half of
    whose mentions have this gold name. If ``weights`` is None, all earlier mentions are in the clusters of their gold
    names. Decisions without a correct candidate are left out.
    """
    made: list[Decision] = []
    names: dict[int | None, NameCluster] = {}  # by gold name
    counts: defaultdict[NameCluster, Counter[int | None]] = defaultdict(Counter)  # of gold names

    def choose(mention: int, candidates: list[NameCluster], rows: list[list[str]]) -> NameCluster:
        gold = document.entities[mention].name_id
        shares = [counts[name][gold] if 2 * counts[name][gold] >= counts[name].total() else 0 for name in candidates]
        right = int(np.argmax(shares)) + 1 if any(shares) else 0
        if candidates and (right or gold not in names):
            made.append(Decision(rows, right))
        best = right
        if weights is not None and candidates:
            best = int(np.argmax([sum(weights.get(feature, 0.0) for feature in row) for row in rows]))
        chosen = candidates[best - 1] if best else NameCluster()
        if weights is None:
            chosen = names.get(gold, chosen)
        names.setdefault(gold, chosen)
        counts[chosen][gold] += 1
        return chosen

    with_names(document, choose)
    return made


def learn_from(documents: Sequence[Document]) -> dict[str, float]:
    """Return weights that are learned in rounds: from gold names, and then also from names that earlier weights assign.

    The later rounds are dataset aggregation (Ross, Gordon and Bagnell 2011): the model learns correct decisions that
    follow its own errors.
    """
    examples = [each for document in documents for each in decisions(document)]
    weights = learn(examples)
    for _ in range(ROUNDS):
        examples += [each for document in documents for each in decisions(document, weights)]
        weights = learn(examples)
    return weights


def learn(examples: Sequence[Decision]) -> dict[str, float]:
    """Return the weights that maximise the penalised conditional likelihood of the right decisions."""
    columns: dict[str, int] = {}
    cells = [
        (row, columns.setdefault(feature, len(columns)))
        for row, features in enumerate(features for each in examples for features in each.rows)
        for feature in features
    ]
    sizes = np.array([len(each.rows) for each in examples])
    starts = np.cumsum(sizes) - sizes
    right = starts + np.array([each.right for each in examples])
    owner = np.repeat(np.arange(len(examples)), sizes)
    matrix = scipy.sparse.csr_array(
        (np.ones(len(cells)), tuple(np.array(cells).T)), shape=(int(sizes.sum()), len(columns))
    )

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = matrix @ weights
        scores -= np.maximum.reduceat(scores, starts)[owner]
        exponentials = np.exp(scores)
        sums = np.add.reduceat(exponentials, starts)
        gradient = exponentials / sums[owner]
        gradient[right] -= 1
        penalty = L2 * len(examples)
        value = (np.log(sums) - scores[right]).sum() + penalty * weights @ weights
        return float(value), matrix.T @ gradient + 2 * penalty * weights

    result = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return {name: round(float(weight), 3) for name, weight in zip(columns, result.x, strict=True)}


def string_match(document: Document) -> Document:
    """Return the document with equal names for entities whose texts are equal except for case."""
    ids: dict[str, int] = {}
    entities = [replace(e, name_id=ids.setdefault(e.text.casefold(), len(ids))) for e in document.entities]
    return document.with_proposals(entities)


def word_match(document: Document) -> Document:
    """Return the document in which each single word has the name of the last entity that begins or ends with it."""
    latest: dict[str, int] = {}
    entities: list[Entity] = []
    for entity in document.entities:
        text, words = entity.text.casefold(), entity.text.casefold().split()
        keys = {text, words[0], words[-1]} if len(words) == 1 else {text, f"{words[0]} ", f"{words[-1]} "}
        known = [text, f"{text} "] if len(words) == 1 else [text, words[0], words[-1]]
        id = next((latest[key] for key in known if key in latest), len(entities))
        latest |= dict.fromkeys(keys, id)
        entities.append(replace(entity, name_id=id))
    return document.with_proposals(entities)


def cross_validated(corpora: Mapping[str, Sequence[Document]]) -> dict[str, list[Document]]:
    """Return the documents of each corpus with names assigned by weights that were learned from the other folds."""
    predicted: dict[str, list[Document]] = {name: list(documents) for name, documents in corpora.items()}
    for fold in range(FOLDS):
        kept = [d for documents in corpora.values() for i, d in enumerate(documents) if i % FOLDS != fold]
        weights = NameWeights(learn_from(kept))
        for name, documents in corpora.items():
            for i in range(fold, len(documents), FOLDS):
                predicted[name][i] = with_names(documents[i], weights)
    return predicted


def row(corpus: str, method: str, scores: NameScores) -> list[str]:
    """Return a row of the table of results: the F1 of each measure in per cent."""
    values = [*(score.f1 for score in scores.scores.values()), scores.mean_f1]
    return [corpus, method, *(f"{100 * value:.1f}" for value in values)]


def write_data(corpora: Mapping[str, Sequence[Document]]) -> None:
    """Write the weights that are learned from all documents, the nicknames, and the first names by gender."""
    weights = learn_from([document for documents in corpora.values() for document in documents])
    source = "scripts/models/train_identity.py, learned from LitBank (CC-BY 4.0) and GUM (CC-BY 4.0)"
    _write("identity.json", {"source": source, "weights": dict(sorted(weights.items()))})
    nicknames: dict[str, list[str]] = {}
    with (importlib.resources.files("nicknames") / "names.csv").open(encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            nicknames.setdefault(line["name1"], []).append(line["name2"])
    source = "PyPI package nicknames 1.0.1, https://github.com/carltonnorthern/nicknames, Apache License 2.0"
    _write("nicknames.json", {"source": source, "nicknames": nicknames})
    source = "PyPI package names 0.3.0, https://github.com/treyhunner/names, MIT License"
    _write("genders.json", {"source": source, **{key: " ".join(names) for key, names in names_by_gender().items()}})


def names_by_gender() -> dict[str, list[str]]:
    """Return the first names of the US census of 1990 that one gender ("m" or "f") has much more often."""
    shares: defaultdict[str, dict[str, float]] = defaultdict(lambda: {"m": 0.0, "f": 0.0})
    for gender, file in (("m", "dist.male.first"), ("f", "dist.female.first")):
        for line in (importlib.resources.files("names") / file).read_text(encoding="utf-8").splitlines():
            name, percent, *_ = line.split()
            shares[name.lower()][gender] = float(percent)
    return {
        gender: sorted(name for name, share in shares.items() if share[gender] >= CLEAR_GENDER * share[other])
        for gender, other in (("m", "f"), ("f", "m"))
    }


def _write(name: str, values: object) -> None:
    (DATA / name).write_text(json.dumps(values, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def main(
    litbank: Annotated[Path, typer.Option(help="Folder of LitBank's .txt and .ann files.")],
    gum: Annotated[Path, typer.Option(help="Folder of GUM's .conllu files.")],
    own: Annotated[bool, typer.Option("--own", help="Also cluster the mentions that the model en finds.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Learn from all files and write the weights.")] = False,
) -> None:
    """Measure the identity model by cross-validation, and learn its weights from all files."""
    corpora = {"LitBank": list(read_litbank(litbank)), "GUM": list(read_gum(gum))}
    predicted = cross_validated(corpora)
    tagger = herdner.load("en") if own else None
    rows: list[list[str]] = []
    for name, gold in corpora.items():
        rows.append(row(name, "same text", evaluate_names(gold, map(string_match, gold))))
        rows.append(row(name, "same text, first or last word", evaluate_names(gold, map(word_match, gold))))
        rows.append(row(name, "model", evaluate_names(gold, predicted[name])))
        if tagger is not None:
            rows.append(row(name, "model, mentions of en", evaluate_names(gold, tagger.pipe(d.text for d in gold))))
    print(markdown_table(["corpus", "method", "MUC", "B-cubed", "CEAF-e", "LEA", "mean of three"], rows))
    if write:
        write_data(corpora)


if __name__ == "__main__":
    typer.run(main)
