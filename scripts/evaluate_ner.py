"""Script that runs `herdner report`: evaluation of predicted entities against gold documents.

    python scripts/evaluate_ner.py gold.conll:conll --predictions predicted.jsonl
    python scripts/evaluate_ner.py gold.conll:conll --before chain.jsonl --after links.jsonl --output report.html

`--help` lists the options. The module `herdner.evaluation.report` makes the report.
"""

from __future__ import annotations

import sys

from herdner.cli import main

if __name__ == "__main__":
    main(["report", *sys.argv[1:]])
