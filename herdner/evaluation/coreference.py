"""Evaluation of names: MUC, B-cubed, CEAF-e and LEA compare clusters of mentions.

A cluster contains all mentions of one name. A mention is identified by its offsets. Mentions that occur only in the
gold clusters or only in the predicted clusters count as errors, except for MUC, which counts links only. All counts are
summed over documents.

Sources: Vilain et al. 1995 (MUC), Bagga and Baldwin 1998 (B-cubed), Luo 2005 (CEAF with the entity-based similarity
phi 4), Moosavi and Strube 2016 (LEA).
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# (SciPy has no types.)

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from herdner.base.extras import check_extra
from herdner.base.messages import format_count
from herdner.evaluation.tabular import Tabular, percent
from herdner.text.document import Document

Clusters = Sequence[frozenset[Hashable]]
"""Disjoint sets of mentions, one for each name."""


class CoreferenceScore(NamedTuple):
    """Score under one coreference measure: the numerators and denominators of its precision and recall.

    Attributes:
        precision_sum: Numerator of the precision.
        n_predicted: Denominator of the precision.
        recall_sum: Numerator of the recall.
        n_gold: Denominator of the recall.
    """

    precision_sum: float = 0.0
    n_predicted: float = 0.0
    recall_sum: float = 0.0
    n_gold: float = 0.0

    @property
    def precision(self) -> float:
        """Precision under the coreference measure; 0 if nothing is predicted."""
        return self.precision_sum / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """Recall under the coreference measure; 0 if there is no gold cluster."""
        return self.recall_sum / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def plus(self, other: CoreferenceScore) -> CoreferenceScore:
        """Return the score with the summed numerators and denominators of this score and ``other``.

        Args:
            other: Counts of the same measure on other documents.
        """
        return CoreferenceScore(*(a + b for a, b in zip(self, other, strict=True)))


def muc(gold: Clusters, predicted: Clusters) -> CoreferenceScore:
    """Return the MUC score, which counts the links that gold and predicted clusters share.

    A cluster of n mentions has n - 1 links.

    Args:
        gold: Gold clusters.
        predicted: Predicted clusters.
    """
    return _sum_clusters(gold, predicted, lambda parts, size, _: parts.total() - len(parts), lambda size: size - 1)


def b_cubed(gold: Clusters, predicted: Clusters) -> CoreferenceScore:
    """Return the B-cubed score, which compares the predicted cluster and the gold cluster of each mention.

    The precision is the mean, over predicted mentions, of the share of the predicted cluster that is also in the gold
    cluster. The recall is the mean, over gold mentions, of the share of the gold cluster that is also in the predicted
    cluster.

    Args:
        gold: Gold clusters.
        predicted: Predicted clusters.
    """
    return _sum_clusters(gold, predicted, lambda parts, size, _: sum(count**2 for count in parts.values()) / size)


def ceaf_e(gold: Clusters, predicted: Clusters) -> CoreferenceScore:
    """Return the CEAF-e score, the total similarity (phi 4) of gold and predicted clusters in the best alignment.

    Args:
        gold: Gold clusters.
        predicted: Predicted clusters.
    """
    check_extra("scipy", "scores of clusters need SciPy")
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    owners = _owners(predicted)
    pairs = [(g, p, n) for g, cluster in enumerate(gold) for p, n in _parts(cluster, owners).items()]
    total = 0.0
    if pairs:
        rows, columns, common = (np.array(each) for each in zip(*pairs, strict=True))
        sizes = np.array([len(c) for c in gold])[rows] + np.array([len(c) for c in predicted])[columns]
        similarity = 2 * common / sizes
        # Clusters without a common mention have similarity 0, so each connected component is aligned by itself.
        n_nodes = len(gold) + len(predicted)
        graph = coo_array((np.ones(len(rows)), (rows, len(gold) + columns)), shape=(n_nodes, n_nodes))
        component = connected_components(graph, directed=False)[1][rows]
        order = np.argsort(component, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
            _, row = np.unique(rows[part], return_inverse=True)
            _, column = np.unique(columns[part], return_inverse=True)
            table = np.zeros((row.max() + 1, column.max() + 1))
            table[row, column] = similarity[part]
            total += float(table[linear_sum_assignment(table, maximize=True)].sum())
    return CoreferenceScore(total, len(predicted), total, len(gold))


def lea(gold: Clusters, predicted: Clusters) -> CoreferenceScore:
    """Return the LEA score: the share of resolved links in each cluster, averaged with the cluster sizes as weights.

    Each pair of mentions of a gold cluster is a link; it is resolved if a predicted cluster contains both mentions. A
    cluster of one mention has one link, which is resolved if the same cluster is predicted. The links of predicted
    clusters are resolved by gold clusters.

    Args:
        gold: Gold clusters.
        predicted: Predicted clusters.
    """

    def credit(parts: Counter[int], size: int, others: Clusters) -> float:
        if size == 1:
            return float(any(len(others[owner]) == 1 for owner in parts))
        return size * sum(count * (count - 1) for count in parts.values()) / (size * (size - 1))

    return _sum_clusters(gold, predicted, credit)


def _sum_clusters(
    gold: Clusters, predicted: Clusters, credit: Callable[[Counter[int], int, Clusters], float],
    weight: Callable[[int], int] = lambda size: size,
) -> CoreferenceScore:  # fmt: skip
    """Sum the credit and the weight of each predicted cluster (precision) and of each gold cluster (recall).

    ``credit`` is called with the number of a cluster's mentions in each cluster of the other side, the size of the
    cluster, and the clusters of the other side. ``weight`` returns the weight of a cluster of a given size.
    """
    sums: list[float] = []
    for clusters, others in ((predicted, gold), (gold, predicted)):
        owners, total = _owners(others), 0.0
        for cluster in clusters:
            total += credit(_parts(cluster, owners), len(cluster), others)
        sums += [total, sum(weight(len(cluster)) for cluster in clusters)]
    return CoreferenceScore(*sums)


def _owners(clusters: Clusters) -> dict[Hashable, int]:
    return {mention: index for index, cluster in enumerate(clusters) for mention in cluster}


def _parts(cluster: frozenset[Hashable], owners: Mapping[Hashable, int]) -> Counter[int]:
    """Count the mentions of a cluster in each cluster of the other side."""
    return Counter(owners[mention] for mention in cluster if mention in owners)


MEASURES: Mapping[str, Callable[[Clusters, Clusters], CoreferenceScore]] = {
    "MUC": muc, "B-cubed": b_cubed, "CEAF-e": ceaf_e, "LEA": lea,
}  # fmt: skip
AVERAGED = ("MUC", "B-cubed", "CEAF-e")


@dataclass(frozen=True)
class NameScores(Tabular):
    """Agreement of predicted names with gold names.

    Attributes:
        scores: Counts of each measure of `MEASURES`, summed over documents.
        n_documents: Number of documents.
        n_names: Number of gold names.
        mentions: "gold" if the gold mentions were clustered, "predicted" if the mentions were predicted as well.
    """

    header: ClassVar[tuple[str, ...]] = ("names", "precision", "recall", "F1")

    scores: Mapping[str, CoreferenceScore]
    n_documents: int
    n_names: int
    mentions: str = "predicted"

    @property
    def mean_f1(self) -> float:
        """Mean F1 of MUC, B-cubed and CEAF-e."""
        return sum(self.scores[name].f1 for name in AVERAGED) / len(AVERAGED)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the table of scores: one for each measure, and one for the mean F1."""
        rows: list[tuple[str, ...]] = [
            (name, percent(score.precision), percent(score.recall), percent(score.f1))
            for name, score in self.scores.items()
        ]
        return [*rows, ("mean of MUC, B-cubed and CEAF-e", "", "", percent(self.mean_f1))]

    def summary(self) -> str:
        """Return the line of text below the table of scores."""
        names, documents = format_count(self.n_names, "gold name"), format_count(self.n_documents, "document")
        return f"{names} in {documents}; {self.mentions} mentions"

    def to_dict(self) -> dict[str, object]:
        """Return the scores as a dict of plain Python values."""
        scores = {
            name: {"precision": score.precision, "recall": score.recall, "f1": score.f1}
            for name, score in self.scores.items()
        }
        return {
            "mentions": self.mentions, "documents": self.n_documents, "names": self.n_names, "mean_f1": self.mean_f1,
            "scores": scores,
        }  # fmt: skip


def clusters_of(document: Document) -> list[frozenset[Hashable]]:
    """Return, for each name in a document, its mentions as a set of offsets (start, end).

    Args:
        document: Document whose entities have a `name_id`. Other entities are left out.
    """
    entities = document.entities
    return [frozenset((entities[i].start, entities[i].end) for i in name.mentions) for name in document.names]


def evaluate_names(gold: Iterable[Document], predicted: Iterable[Document], mentions: str = "predicted") -> NameScores:
    """Score the predicted names of documents against the gold names of the same documents.

    Args:
        gold: Documents whose entities have a `name_id`.
        predicted: The same documents with predicted names, in the same order.
        mentions: "gold" if the predicted documents have the gold mentions, else "predicted"; for the summary.

    Returns:
        Scores, summed over documents.

    Raises:
        ValueError: The numbers of documents differ, or no gold entity has a `name_id`.
    """
    totals = dict.fromkeys(MEASURES, CoreferenceScore())
    n_documents = n_names = 0
    for reference, guess in zip(gold, predicted, strict=True):
        gold_clusters, predicted_clusters = clusters_of(reference), clusters_of(guess)
        n_documents += 1
        n_names += len(gold_clusters)
        for name, measure in MEASURES.items():
            totals[name] = totals[name].plus(measure(gold_clusters, predicted_clusters))
    if not n_names:
        raise ValueError(
            "no gold entity has a `name_id`; give files that store it, such as JSON lines with the key 'name_id'"
        )
    return NameScores(totals, n_documents, n_names, mentions)
