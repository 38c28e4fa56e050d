"""Write down spaCy's rules of English tokens as herdner/data/english.json.

    python scripts/models/english_rules.py [--output FILE]

A tagger that reads the file need not import spaCy, and an old model reads text as it always did, whatever spaCy's
next version does. After a change of the file, models are to be trained anew and `TokenizerSettings.rules` is to be
counted up.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer

from herdner.text.splitting import spacy_rules

RULES = Path(__file__).resolve().parents[2] / "herdner/data/english.json"


def written() -> dict[str, Any]:
    """The content of the file."""
    rules = spacy_rules("en")
    if rules.is_word is not None:
        raise SystemExit("english_rules: spaCy's English now has words that are never cut; give the file a field")
    address: Any = spacy.blank("en").tokenizer.url_match
    return {
        "source": f"spaCy {spacy.about.__version__}, MIT licence, https://github.com/explosion/spaCy",
        "prefixes": rules.prefixes,
        "suffixes": rules.suffixes,
        "infixes": rules.infixes,
        "address": address.__self__.pattern,
        "exceptions": sorted(rules.exceptions.values()),
    }


def main(output: Annotated[Path, typer.Option(help="The file.")] = RULES) -> None:
    with output.open("w", encoding="utf-8") as file:
        fields = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in written().items()]
        file.write("{\n" + ",\n".join(fields) + "\n}\n")


if __name__ == "__main__":
    typer.run(main)
