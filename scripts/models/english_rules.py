"""Write spaCy's tokenizer rules for English to herdner/data/english.json.

    python scripts/models/english_rules.py [--output FILE]

With this file, a tagger does not import spaCy, and the tokens of a model do not depend on the version of spaCy. After a
change of the file, train the models again and increment `TokenizerSettings.rules`.
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
    """Return the content of the file."""
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
