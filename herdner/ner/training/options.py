"""How a tagger is trained, as one checked value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from herdner.crf.learning import Learner
from herdner.crf.templates import LinearChain, SkipChain, Template, linear_chain_template, skip_chain_template
from herdner.crf.weights import ChainWeights
from herdner.ner.features import FeaturePlan, default_plan
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.training.adapting import ADAPTING, untrained
from herdner.ner.training.chains import TRAINERS, Penalty, TrainerName
from herdner.text.tags import SCHEMES, Scheme
from herdner.text.tokenize import TokenizerSettings


@dataclass(frozen=True)
class Recipe:
    """The parameters of `herdner.Tagger` that its training reads; they are described there.

    Raises:
        ValueError: One of them does not exist, or two do not go together.
    """

    plan: FeaturePlan | None
    lexicon: Lexicon | None
    scheme: Scheme
    constrained: bool
    c1: float
    c2: float | None
    min_freq: int | None
    max_iterations: int
    tolerance: float
    trainer: TrainerName
    templates: Sequence[Template] | None
    learner: Learner | None
    n_folds: int
    averaged: bool
    calibrated: bool
    tokenizer: TokenizerSettings | None

    def __post_init__(self) -> None:
        if self.trainer not in TRAINERS:
            raise ValueError(f"unknown trainer {self.trainer!r}; known are {', '.join(TRAINERS)}")
        if self.averaged and (self.trainer != "herdner" or self.c1):
            raise ValueError("averaged chains need the trainer herdner, without an L1 norm: CRFsuite's differ in tags")
        if self.scheme not in SCHEMES:
            raise ValueError(f"unknown tag scheme {self.scheme!r}; known are {', '.join(SCHEMES)}")

    def link_templates(self, base: TaggerModel | None) -> list[SkipChain]:
        """The templates of links; ValueError where they are none or the chain is not among them."""
        if self.templates is None and base is not None:
            return [each.template for each in base.link_tables]
        templates = (
            (linear_chain_template(), skip_chain_template()) if self.templates is None else tuple(self.templates)
        )
        if sum(isinstance(template, LinearChain) for template in templates) != 1:
            raise ValueError("templates must hold linear_chain() once, and skip_chain(...) for each kind of link")
        links = [template for template in templates if isinstance(template, SkipChain)]
        if len(links) < len(templates) - 1 or self.n_folds < 1:
            raise ValueError("templates are linear_chain() and skip_chain(...), and n_folds is at least 1")
        return links

    def without_weights(self, base: TaggerModel | None) -> TaggerModel:
        """A model that lacks its weights, as the base or the parameters have it."""
        if base is not None:
            return untrained(base, self.plan, self.lexicon, self.scheme, self.tokenizer)
        lexicon = self.lexicon or Lexicon()
        plan = self.plan or default_plan(
            lexicon.gazetteers.names if lexicon.gazetteers else (), topics=lexicon.topics is not None
        )
        tokenizer = self.tokenizer or TokenizerSettings()
        return TaggerModel(ChainWeights.none(), plan, lexicon, self.scheme, self.constrained, tokenizer)

    def penalty(self, base: TaggerModel | None) -> Penalty:
        """What keeps the chain's weights small."""
        usual = Penalty() if base is None else ADAPTING
        c2 = usual.c2 if self.c2 is None else self.c2
        min_freq = usual.min_freq if self.min_freq is None else self.min_freq
        return replace(usual, c1=self.c1, c2=c2, min_freq=min_freq)
