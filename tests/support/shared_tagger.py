"""``python tests/support/shared_tagger.py --minutes 10``: threads that share one tagger. Exit status 1 where an answer
is not, bit for bit, what a thread alone is answered.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import herdner
from herdner import Tagger

TEXT = "Winam Ferries lost in court. Winam will pay, said Charlotte Akinyi in Kisumu. "
TEXTS = [TEXT * (1 + i % 5) + f"Ada {i} met Bob in OSLO." for i in range(40)]


@dataclass
class Shared:
    """Number of calls, and the calls with different answers."""

    calls: int = 0
    wrong: list[str] = field(default_factory=list)


def calls(tagger: Tagger) -> list[Callable[[], object]]:
    """Ways to use one tagger, each with the same answer whenever it is called."""
    several = TEXTS[::7]
    return [
        *((lambda text=text: tagger.tag(text)) for text in TEXTS),
        *((lambda i=i: tagger.tag(TEXTS[i], seed=i, backend="gibbs", n_sweeps=20)) for i in range(8)),
        *((lambda i=i: tagger.tag(TEXTS[i], seed=i, backend="dhg", n_sweeps=20)) for i in range(8)),
        lambda: tagger.tag(TEXT, backend="gibbs", n_sweeps=20, n_chains=3, n_threads=3),
        lambda: list(tagger.pipe(several, n_jobs=2)),
        lambda: list(tagger.pipe(several, batch_size=1, links=False)),
        lambda: [each.to_dict() for each in tagger.explain(TEXT)],
        lambda: tagger.find_links(tagger.tag(TEXTS[3])),
    ]


def share(tagger: Tagger, n_threads: int, seconds: float) -> Shared:
    """The threads call in orders of their own until the time is up, once at least."""
    ways = calls(tagger)
    expected = [repr(way()) for way in ways]
    found, lock, deadline = Shared(), threading.Lock(), time.monotonic() + seconds

    def work(number: int) -> None:
        rng = random.Random(number)
        while True:
            which = rng.randrange(len(ways))
            answer = repr(ways[which]())
            with lock:
                found.calls += 1
                if answer != expected[which]:
                    found.wrong.append(f"call {which} in thread {number}: {answer[:200]}")
            if time.monotonic() >= deadline:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Threads that share one tagger.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    found = share(herdner.load("en"), options.threads, 60 * options.minutes)
    print(f"{options.threads} threads, {found.calls} calls, {len(found.wrong)} answered otherwise")
    for each in found.wrong[:20]:
        print(f"  {each}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
