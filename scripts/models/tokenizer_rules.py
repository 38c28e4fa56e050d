"""Write spaCy's tokenizer rules for the languages of the shipped models to herdner/data.

    python scripts/models/tokenizer_rules.py [--output FOLDER]

With the written files, a tagger does not import spaCy, and the tokens of a model do not depend on the version of spaCy.
If the rules of a language change, train the model of this language again and increment `TokenizerSettings.rules`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer

from herdner.text.splitting import LANGUAGES_WITH_RULES, spacy_rules

DATA = Path(__file__).resolve().parents[2] / "herdner/data"


def written(language: str) -> dict[str, Any]:
    """Return the content of the file with the rules of a language."""
    rules = spacy_rules(language)
    if rules.is_word is not None:
        raise SystemExit(f"tokenizer_rules: spaCy's {language!r} has words that are never split; add a field for them")
    address: Any = spacy.blank(language).tokenizer.url_match
    return {
        "source": f"spaCy {spacy.about.__version__}, MIT licence, https://github.com/explosion/spaCy",
        "prefixes": rules.prefixes,
        "suffixes": rules.suffixes,
        "infixes": rules.infixes,
        "address": address.__self__.pattern,
        "exceptions": sorted(rules.exceptions.values()),
    }


def main(output: Annotated[Path, typer.Option(help="Folder to write the files to.")] = DATA) -> None:
    for language, name in LANGUAGES_WITH_RULES.items():
        with (output / f"{name}.json").open("w", encoding="utf-8") as file:
            items = written(language).items()
            fields = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in items]
            file.write("{\n" + ",\n".join(fields) + "\n}\n")


if __name__ == "__main__":
    typer.run(main)
