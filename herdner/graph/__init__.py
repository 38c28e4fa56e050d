"""Factor graphs: domains, factors, builders of common graphs, files, and compiled forms."""

from __future__ import annotations

from herdner.graph.builders import boltzmann_machine, chain_graph, complete_graph, graph_from_joint, ising, potts
from herdner.graph.density import DensityFactors, DensityGraph, Reals, compile_density
from herdner.graph.domain import Discrete, Domains
from herdner.graph.factors import Factors, TableFactors
from herdner.graph.files import GraphFileError, load_graph, save_graph
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import TableGraph, compile_tables

__all__ = [
    "DensityFactors", "DensityGraph", "Discrete", "Domains", "FactorGraph", "Factors", "GraphFileError", "Reals",
    "TableFactors", "TableGraph", "boltzmann_machine", "chain_graph", "compile_density", "compile_tables",
    "complete_graph", "graph_from_joint", "ising", "load_graph", "potts", "save_graph",
]  # fmt: skip
