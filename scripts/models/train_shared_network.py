"""Train one neural network for the models of several languages, and add it to the models.

    python scripts/models/train_shared_network.py --data ../shared/data/ner --output herdner/data

This needs PyTorch (``pip install torch``), the corpora of train_languages.py and the models that it writes. The network
is that of train_network.py without word vectors. It learns from the training documents of all languages together:
word classes, shapes and affixes of names are similar in all of them. The scale of its log-probabilities is that of
`en`, so it is not fitted to the development files. The models get the same network; small weights of their features are
removed if a file would be too large. The command prints the scores without and with the network.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from train_en import Source
from train_languages import RECIPES, measure, of_size
from train_network import Examples, NetworkOptions, Reader, Trainer, training_tags, with_network

import herdner
from herdner.corpora.registry import info
from herdner.ner.decode import Decoder
from herdner.ner.model import TaggerModel
from herdner.ner.network import Network
from herdner.ner.tagger import Tagger

LANGUAGES = "da", "sv", "pt", "nb"
OPTIONS = NetworkOptions(units=96, dimensions=48, epochs=3, batch=1024, dropout=0.4)
SCALE = 0.25


def train_shared(models: dict[str, TaggerModel], data: Path, console: Console) -> Network:
    """Train a network on the training documents of all languages.

    Args:
        models: Model of each language, with the lexicon that its attributes of words come from.
        data: Folder of the corpora.
        console: Console for the loss of each epoch.
    """
    labels = next(iter(models.values())).weights.labels
    parts, tags = list[Examples](), list[np.ndarray]()
    for code, model in models.items():
        sources = [Source(part.corpus, d, i) for part in RECIPES[code].training for i, d in enumerate(part.read(data))]
        parts.append(Reader(Decoder.of(model), model)([source.document for source in sources]))
        columns = np.array([labels.index(tag) for tag in model.weights.labels])
        tags.append(columns[training_tags(model, sources)])
    examples, trainer = Examples.concatenate(parts), Trainer(labels, OPTIONS)
    for loss in trainer.train(examples, np.concatenate(tags), np.ones(examples.offsets[-1], np.float32)):
        console.print(f"loss {loss:.4f}")
    return trainer.rounded(examples, 1.0)


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    output: Annotated[Path, typer.Option(help="Folder to write the models to.")],
    largest: Annotated[float, typer.Option(help="Maximum megabytes of a file; small weights are removed.")] = 2.99,
) -> None:
    """Add a network that is trained on several languages to their shipped models."""
    console = Console(stderr=True)
    models = {code: replace(herdner.load(code).model_, network=None) for code in LANGUAGES}
    network = train_shared(models, data, console)
    for code, model in models.items():
        add_network(code, model, network, data, output, largest, console)


def add_network(
    code: str, model: TaggerModel, network: Network, data: Path, output: Path, largest: float, console: Console
) -> None:
    """Write the model of a language with the network, and print the F1 without and with it."""
    whole = of_size(with_network(model, network, SCALE), largest)
    before, scores = (measure(Tagger.from_model(each), RECIPES[code], data) for each in (model, whole))
    names = dict.fromkeys(part.corpus for each in LANGUAGES for part in RECIPES[each].training)
    corpora = {name: {"licence": info(name).licence, "citation": info(name).citation} for name in names}
    card = {
        **model.card, "corpora": {**model.card["corpora"], **corpora},
        "f1": {name: each["f1"] for name, each in scores.items()}, "scores": scores,
        "made_by": "scripts/models/train_languages.py and train_shared_network.py",
    }  # fmt: skip
    file = output / f"{code}.herdner"
    replace(whole, card=card).save(file, weight_type="float16", shared_lexicon="en")
    for name, each in scores.items():
        console.print(f"{code}, {name}: F1 {before[name]['f1']} without the network, {each['f1']} {each['interval']}")
    console.print(f"{file}: {file.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    typer.run(main)
