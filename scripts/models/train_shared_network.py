"""Train one neural network for the models of several languages, and add it to the models.

    python scripts/models/train_shared_network.py --data ../shared/data/ner --output herdner/data

This needs PyTorch (``pip install torch``), the corpora of train_languages.py and the models that it writes. The network
is that of train_network.py without word vectors. It learns from the training documents of all languages together:
word classes, shapes and affixes of names are similar in all of them. The scale of its log-probabilities is that of
`en`, so it is not fitted to the development files. The models get the same network; small weights of their features are
removed if a file would be too large.

The calibration is fitted to the training documents. Each third of the documents of a language is tagged by a chain and
a network that were trained on the other documents. The calibration is the mean of two: one for the chain alone, and one
for the chain with the network. It is kept only if it lowers the log loss on the development files. The command prints
the F1, the log loss and the calibration error without and with the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from train_en import Source
from train_languages import C2, FOLDS, ITERATIONS, RECIPES, Recipe, measure, of_size, training_documents
from train_network import (
    Examples,
    HeldOutScores,
    NetworkOptions,
    Reader,
    Tokens,
    TrainNetwork,
    held_out_weights,
    train_on,
    training_tags,
    with_network,
)

import herdner
from herdner.corpora.registry import info
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.calibration import ece, entity_confidences, log_loss
from herdner.ner.calibration import Calibration
from herdner.ner.decode import Decoder
from herdner.ner.model import TaggerModel
from herdner.ner.network import Network
from herdner.ner.tagger import Tagger

LANGUAGES = "da", "sv", "pt", "nb"
OPTIONS = NetworkOptions(units=96, dimensions=48, epochs=3, batch=1024, dropout=0.4)
SCALE = 0.25
CALIBRATION = {  # text of the card: whether the calibration was fitted with the network
    True: "fitted to held-out predictions of the chain with the network, and of the chain alone",
    False: "fitted to held-out predictions of the chain without the network",
}


def shared_trainer(
    models: Mapping[str, TaggerModel], sources: Mapping[str, Sequence[Source]], console: Console
) -> TrainNetwork:
    """Return a function that trains a network on the documents of all languages, with the weights of all documents.

    Args:
        models: Model of each language, with the lexicon that its attributes of words come from.
        sources: Training documents of each language.
        console: Console for the loss of each epoch.
    """
    tag_set = next(iter(models.values())).weights.tags
    parts, tags = list[Examples](), list[np.ndarray]()
    for code, model in models.items():
        parts.append(Reader(Decoder.of(model), model)([source.document for source in sources[code]]))
        columns = np.array([tag_set.index(tag) for tag in model.weights.tags])
        tags.append(columns[training_tags(model, sources[code])])
    n_tokens = [source.document.n_tokens for each in sources.values() for source in each]
    return train_on(Tokens(Examples.concatenate(parts), np.concatenate(tags), n_tokens), tag_set, OPTIONS, console)


def held_out_networks(sources: Mapping[str, Sequence[Source]], train: TrainNetwork) -> list[Network]:
    """Return a network for each fold, trained without the documents of this fold in all languages."""
    return [
        train([weight for each in sources.values() for weight in held_out_weights(each, fold, FOLDS)])
        for fold in range(FOLDS)
    ]


def calibrate(
    model: TaggerModel, recipe: Recipe, sources: Sequence[Source], networks: Sequence[Network]
) -> Calibration:
    """Return a calibration for the chain with its network, as in train_network.py.

    Args:
        model: Model with the links.
        recipe: Recipe of the model.
        sources: Training documents of the language.
        networks: Network of each fold, trained without the documents of the fold.
    """
    chain = Tagger(
        model.plan, model.lexicon, c2=C2, min_freq=recipe.min_freq, max_iterations=ITERATIONS, scheme=model.scheme,
        templates=(linear_chain_template(),), tokenizer=model.tokenizer,
    )  # fmt: skip
    return HeldOutScores.compute(model, chain, sources, FOLDS, networks).calibrate(model, (0.0, SCALE))


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    output: Annotated[Path, typer.Option(help="Folder to write the models to.")],
    largest: Annotated[float, typer.Option(help="Maximum megabytes of a file; small weights are removed.")] = 2.99,
) -> None:
    """Add a network that is trained on several languages to their shipped models."""
    console = Console(stderr=True)
    models = {code: replace(herdner.load(code).model_, network=None) for code in LANGUAGES}
    sources = {code: training_documents(RECIPES[code], data) for code in LANGUAGES}
    train = shared_trainer(models, sources, console)
    network = train([source.weight for each in sources.values() for source in each])
    networks = held_out_networks(sources, train)
    for code, model in models.items():
        whole = of_size(with_network(model, network, SCALE), largest)
        calibration = calibrate(model, RECIPES[code], sources[code], networks)
        write(code, model, replace(whole, calibration=calibration), data, output, console)


def write(code: str, model: TaggerModel, whole: TaggerModel, data: Path, output: Path, console: Console) -> None:
    """Write the model with the network, and print its scores.

    The calibration of the model without the network is kept if its log loss on the development files is smaller.

    Args:
        code: Code of the language.
        model: Model without the network.
        whole: Model with the network, and with a calibration for it.
        data: Folder of the corpora.
        output: Folder to write the model to.
        console: Console for the scores.
    """
    recipe = RECIPES[code]
    earlier = replace(whole, calibration=model.calibration)
    versions = {"without the network": model, "earlier calibration": earlier, "new calibration": whole}
    errors = {name: calibration_errors(Tagger.from_model(each), recipe, data) for name, each in versions.items()}
    for version, rows in errors.items():
        for part, row in rows.items():
            console.print(
                f"{code}, {part}, {version}: log loss {row.log_loss:.4f}, ECE {row.ece:.4f}, {row.n_names} names"
            )
    is_better = mean_log_loss(errors["new calibration"]) < mean_log_loss(errors["earlier calibration"])
    whole = whole if is_better else earlier
    before, scores = (measure(Tagger.from_model(each), recipe, data) for each in (model, whole))
    names = dict.fromkeys(part.corpus for each in LANGUAGES for part in RECIPES[each].training)
    corpora = {name: {"licence": info(name).licence, "citation": info(name).citation} for name in names}
    card = {
        **model.card, "corpora": {**model.card["corpora"], **corpora},
        "f1": {name: each["f1"] for name, each in scores.items()}, "scores": scores,
        "calibration": CALIBRATION[is_better],
        "made_by": "scripts/models/train_languages.py and train_shared_network.py",
    }  # fmt: skip
    file = output / f"{code}.herdner"
    replace(whole, card=card).save(file, weight_type="float16", shared_lexicon="en")
    for name, each in scores.items():
        console.print(f"{code}, {name}: F1 {before[name]['f1']} without the network, {each['f1']} {each['interval']}")
    console.print(f"{file}: {file.stat().st_size / 1e6:.2f} MB, calibration {card['calibration']}")


class CalibrationErrors(NamedTuple):
    """Errors of the confidences of the predicted names in one file.

    Attributes:
        n_names: Number of predicted names.
        log_loss: Mean log loss.
        ece: Expected calibration error, with bins of equal numbers of names.
    """

    n_names: int
    log_loss: float
    ece: float


def calibration_errors(tagger: Tagger, recipe: Recipe, data: Path) -> dict[str, CalibrationErrors]:
    """Return the errors of the confidences of a tagger on each development part of a recipe."""
    errors: dict[str, CalibrationErrors] = {}
    for part in recipe.development:
        gold = part.read(data)
        found = entity_confidences(gold, list(tagger.pipe(document.without_annotation() for document in gold)))
        errors[f"{part.corpus} dev"] = CalibrationErrors(len(found.confidence), log_loss(found), ece(found, "mass"))
    return errors


def mean_log_loss(errors: Mapping[str, CalibrationErrors]) -> float:
    """Return the mean log loss of the names in all files."""
    return sum(each.n_names * each.log_loss for each in errors.values()) / sum(each.n_names for each in errors.values())


if __name__ == "__main__":
    typer.run(main)
