"""Evaluation of predicted entities against gold documents: the command `herdner report` as a script.

    python scripts/evaluate_ner.py gold.conll:conll predicted.jsonl:jsonl
    python scripts/evaluate_ner.py gold.conll:conll --before chain.jsonl --after links.jsonl --output report.html

`--help` lists the options. The report is made by `herdner.evaluation.report`.
"""

from __future__ import annotations

import sys

from herdner.cli import main

if __name__ == "__main__":
    main(["report", *sys.argv[1:]])
