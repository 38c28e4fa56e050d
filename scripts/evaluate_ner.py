"""Measure predicted names against a gold standard: the command `herdner report`, under the name people look for here.

    python scripts/evaluate_ner.py gold.conll:conll predicted.jsonl:jsonl
    python scripts/evaluate_ner.py gold.conll:conll --before chain.jsonl --after links.jsonl --output report.html

`--help` lists the options; `herdner.evaluation.report` does the work.
"""

from __future__ import annotations

import sys

from herdner.cli import main

if __name__ == "__main__":
    main(["report", *sys.argv[1:]])
