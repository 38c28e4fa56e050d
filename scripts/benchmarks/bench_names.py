"""Time and peak memory of the index of names (`herdner names`) on a generated stream of documents.

    python scripts/benchmarks/bench_names.py --documents 100000

Each document has three sentences with invented names. A line is printed after each power of ten: documents, names,
seconds, and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Iterator

import herdner
from herdner.ner.name_index import NameIndex

SYLLABLES = [consonant + vowel for consonant in "bdklmnrs" for vowel in "aeio"]


def invented_word(rng: random.Random, n_syllables: int) -> str:
    return "".join(rng.choices(SYLLABLES, k=n_syllables)).capitalize()


def texts(n_documents: int, seed: int) -> Iterator[str]:
    """Yield the texts of the documents."""
    rng = random.Random(seed)
    for _ in range(n_documents):
        person = f"{invented_word(rng, 2)} {invented_word(rng, 3)}"
        company, city = f"{invented_word(rng, 3)} Ferries Ltd.", rng.choice(["London", "Nairobi", "Oslo", "Lima"])
        yield (
            f"{person} joined {company} in {city} last year. The company said on Monday that {person.split()[1]} would"
            f" lead its office in {city}. Mr. {person.split()[1]} declined to comment on the plans.\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the index of names.")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tagger, start, report = herdner.load("en"), time.perf_counter(), 1000
    print(f"{'documents':>9} {'names':>9} {'seconds':>8} {'peak MB':>8}")
    with NameIndex() as index:
        for n, document in enumerate(tagger.pipe(texts(arguments.documents, arguments.seed)), 1):
            index.add(document)
            if n in (report, arguments.documents):
                report *= 10
                megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"{n:>9,} {len(index):>9,} {time.perf_counter() - start:>8.1f} {megabytes:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
