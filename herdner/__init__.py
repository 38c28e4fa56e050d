"""herdner: names tagged consistently across a document, fast, on a CPU.

>>> import herdner
>>> tagger = herdner.load("en")
>>> [entity.text for entity in tagger.tag("Ada Lovelace met Charles Babbage in London.").entities]
['Ada Lovelace', 'Charles Babbage', 'London']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Imported when first used, so that what is not used costs no start-up time.
_HOMES = {
    "herdner.graph": (
        "FactorGraph", "TableFactors", "TableGraph", "boltzmann", "chain", "compile_tables", "complete", "from_joint",
        "ising", "load_graph", "potts", "save_graph",
    ),
    "herdner.inference": (
        "BACKENDS", "Backend", "ImpossibleGraph", "Interrupted", "Result", "UnsupportedGraph", "make_backend",
    ),
    "herdner.inference.backends.dogs": ("DoGS",),
    "herdner.inference.backends.gibbs": (
        "Gibbs", "annealed_gibbs", "bounded_error", "dhg", "gibbs", "herded_gibbs", "qmc_gibbs", "rdhg",
    ),
    "herdner.sampling": (
        "LFSR", "Record", "Sobol", "bins", "blanket", "geometric", "linear", "neighbour_sum", "random_bins",
    ),
    "herdner.evaluation.compare": ("compare",),
    "herdner.crf.learning": ("Learner", "MCMCLikelihood"),
    "herdner.crf.rules": ("Acronym", "LastName", "SameStem", "SameWord"),
    "herdner.crf.templates": ("linear_chain", "skip_chain"),
    "herdner.text.document": ("Document", "Entity"),
    "herdner.evaluation.scores": ("evaluate",),
    "herdner.ner.features": ("FeaturePlan",),
    "herdner.text.io": ("FormatError", "read_documents", "write_documents"),
    "herdner.ner.layer": ("SkipChainLayer",),
    "herdner.ner.lexicon": ("Gazetteers", "Lexicon"),
    "herdner.ner.model_file": ("ModelError",),
    "herdner.ner.tagger": ("Tagger", "load"),
    "herdner.text.tokenize": ("Tokenizer",),
}  # fmt: skip
_MODULES = ("convergence", "denoising", "dobrushin", "fwss", "herding")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from herdner import convergence as convergence
    from herdner import denoising as denoising
    from herdner import dobrushin as dobrushin
    from herdner import fwss as fwss
    from herdner import herding as herding
    from herdner.crf.learning import Learner as Learner
    from herdner.crf.learning import MCMCLikelihood as MCMCLikelihood
    from herdner.crf.rules import Acronym as Acronym
    from herdner.crf.rules import LastName as LastName
    from herdner.crf.rules import SameStem as SameStem
    from herdner.crf.rules import SameWord as SameWord
    from herdner.crf.templates import linear_chain as linear_chain
    from herdner.crf.templates import skip_chain as skip_chain
    from herdner.evaluation.compare import compare as compare
    from herdner.evaluation.scores import evaluate as evaluate
    from herdner.graph import FactorGraph as FactorGraph
    from herdner.graph import TableFactors as TableFactors
    from herdner.graph import TableGraph as TableGraph
    from herdner.graph import boltzmann as boltzmann
    from herdner.graph import chain as chain
    from herdner.graph import compile_tables as compile_tables
    from herdner.graph import complete as complete
    from herdner.graph import from_joint as from_joint
    from herdner.graph import ising as ising
    from herdner.graph import load_graph as load_graph
    from herdner.graph import potts as potts
    from herdner.graph import save_graph as save_graph
    from herdner.inference import BACKENDS as BACKENDS
    from herdner.inference import Backend as Backend
    from herdner.inference import ImpossibleGraph as ImpossibleGraph
    from herdner.inference import Interrupted as Interrupted
    from herdner.inference import Result as Result
    from herdner.inference import UnsupportedGraph as UnsupportedGraph
    from herdner.inference import make_backend as make_backend
    from herdner.inference.backends.dogs import DoGS as DoGS
    from herdner.inference.backends.gibbs import Gibbs as Gibbs
    from herdner.inference.backends.gibbs import annealed_gibbs as annealed_gibbs
    from herdner.inference.backends.gibbs import bounded_error as bounded_error
    from herdner.inference.backends.gibbs import dhg as dhg
    from herdner.inference.backends.gibbs import gibbs as gibbs
    from herdner.inference.backends.gibbs import herded_gibbs as herded_gibbs
    from herdner.inference.backends.gibbs import qmc_gibbs as qmc_gibbs
    from herdner.inference.backends.gibbs import rdhg as rdhg
    from herdner.ner.features import FeaturePlan as FeaturePlan
    from herdner.ner.layer import SkipChainLayer as SkipChainLayer
    from herdner.ner.lexicon import Gazetteers as Gazetteers
    from herdner.ner.lexicon import Lexicon as Lexicon
    from herdner.ner.model_file import ModelError as ModelError
    from herdner.ner.tagger import Tagger as Tagger
    from herdner.ner.tagger import load as load
    from herdner.sampling import LFSR as LFSR
    from herdner.sampling import Record as Record
    from herdner.sampling import Sobol as Sobol
    from herdner.sampling import bins as bins
    from herdner.sampling import blanket as blanket
    from herdner.sampling import geometric as geometric
    from herdner.sampling import linear as linear
    from herdner.sampling import neighbour_sum as neighbour_sum
    from herdner.sampling import random_bins as random_bins
    from herdner.text.document import Document as Document
    from herdner.text.document import Entity as Entity
    from herdner.text.io import FormatError as FormatError
    from herdner.text.io import read_documents as read_documents
    from herdner.text.io import write_documents as write_documents
    from herdner.text.tokenize import Tokenizer as Tokenizer

__all__ = sorted([*_HOME_OF, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"herdner.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'herdner' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *globals()]
