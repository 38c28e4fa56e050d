"""Checked options of training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from herdner.base.checks import check_integer, check_real
from herdner.crf.templates import LinearChain, SkipChain, linear_chain_template, skip_chain_template
from herdner.crf.weights import ChainWeights
from herdner.ner.features import default_plan
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.training.adapting import without_weights
from herdner.text.tags import SCHEMES
from herdner.text.tokenize import TokenizerSettings

if TYPE_CHECKING:
    from herdner.ner.tagger import Tagger

TrainerName = Literal["herdner", "crfsuite"]
TRAINERS: tuple[TrainerName, ...] = get_args(TrainerName)


class Regularisation(NamedTuple):
    """Penalties on the weights of a linear chain, and the minimum frequency of features.

    Attributes:
        c1: Weight of the L1 norm.
        c2: Weight of the squared distance from the mean of the prior.
        min_freq: Number of times that a feature must occur with a tag to have a weight.
        base_factor: Factor of ``c2`` for weights of a base model.
        new_label_factor: Factor of ``c2`` for weights of the tags of a base model, if the documents have new labels.
        new_label_decrease: Factor of the smallest relative decrease of the loss, if documents with new labels are
            fully annotated.
    """

    c1: float
    c2: float
    min_freq: int
    base_factor: float
    new_label_factor: float = 5000.0
    new_label_decrease: float = 0.04


def regularisation(
    c1: float = 0.0, c2: float | None = None, min_freq: int | None = None, *, has_base: bool = False
) -> Regularisation:
    """Build the options for regularisation; arguments that are None get default values.

    Args:
        c1: Weight of the L1 norm.
        c2: Weight of the squared L2 norm; None is 0.3.
        min_freq: Minimum frequency of features; None is 2, or 1 if a base model is adapted.
        has_base: True if a base model is adapted. Changes of its weights, which were learned from many documents, are
            penalised ten times as strongly (measured by scripts/benchmarks/bench_adapting.py).

    Returns:
        The regularisation.
    """
    if min_freq is None:
        min_freq = 1 if has_base else 2
    return Regularisation(c1, 0.3 if c2 is None else c2, min_freq, 10.0 if has_base else 1.0)


def check_options(tagger: Tagger) -> None:
    """Raise `ValueError` if a training option is invalid.

    Args:
        tagger: Tagger to be trained, whose parameters are the options.

    Raises:
        ValueError: An option is unknown or out of range, or two options contradict each other.
    """
    for name in ("c1", "c2", "tolerance"):
        if getattr(tagger, name) is not None:
            check_real(getattr(tagger, name), name, 0.0)
    for name in ("min_freq", "max_iterations"):
        if getattr(tagger, name) is not None:
            check_integer(getattr(tagger, name), name, 0)
    if tagger.trainer not in TRAINERS:
        raise ValueError(f"`trainer` must be one of {', '.join(TRAINERS)}, got {tagger.trainer!r}")
    if tagger.averaged and tagger.trainer != "herdner":
        raise ValueError(
            "`averaged` needs trainer='herdner', because the chains of CRFsuite may have different tags, got"
            f" trainer={tagger.trainer!r}"
        )
    if tagger.scheme not in SCHEMES:
        raise ValueError(f"`scheme` must be one of {', '.join(SCHEMES)}, got {tagger.scheme!r}")


def link_templates(tagger: Tagger, base: TaggerModel | None) -> list[SkipChain]:
    """Return the link templates of the model to be trained.

    Args:
        tagger: Tagger to be trained, whose parameters are the options.
        base: Model that is adapted, whose templates are the default.

    Raises:
        ValueError: The templates do not include the linear chain exactly once, a template is unknown, or
            ``n_folds`` is below 1.
    """
    if tagger.n_folds < 1:
        raise ValueError(f"`n_folds` must be at least 1, got {tagger.n_folds}")
    if tagger.templates is None and base is not None:
        return [each.template for each in base.link_tables]
    default = (linear_chain_template(), skip_chain_template())
    templates = default if tagger.templates is None else tuple(tagger.templates)
    links = [template for template in templates if isinstance(template, SkipChain)]
    n_chains = sum(isinstance(template, LinearChain) for template in templates)
    if n_chains != 1 or len(links) < len(templates) - 1:
        raise ValueError(
            "`templates` must contain linear_chain_template() once, and otherwise only skip_chain_template(...),"
            f" got {templates!r:.80}"
        )
    return links


def initial_model(tagger: Tagger, base: TaggerModel | None) -> TaggerModel:
    """Return a tagger model without weights, which has the features and tags of the training options.

    Args:
        tagger: Tagger to be trained, whose parameters are the options.
        base: Model that is adapted. The new model has its features, tags and tokenizer.

    Raises:
        ValueError: A parameter contradicts the base model.
    """
    if base is not None:
        return without_weights(base, tagger)
    lexicon = tagger.lexicon or Lexicon()
    plan = tagger.plan or default_plan(lexicon.gazetteer_names, topics=lexicon.topics is not None)
    tokenizer = tagger.tokenizer or TokenizerSettings()
    return TaggerModel(ChainWeights.empty(), plan, lexicon, tagger.scheme, tagger.constrained, tokenizer)
