"""No public call reads or writes memory that it does not own: invalid values raise an error, or give some result.

Each case runs in a process of its own, so that the end of this process is a failure of one test.
"""

# ruff: noqa: E501  (lines of the cases below)
from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE

import herdner
from herdner.base.arrays import frozen
from herdner.dobrushin import Influence
from herdner.graph.conditionals import Conditionals

TESTS = Path(__file__).resolve().parents[1]

PRELUDE = """
import copy, faulthandler, gc, pickle, threading
from contextlib import suppress
from dataclasses import replace
import numpy as np
import herdner
from herdner.crf.chain_data import ChainData
from herdner.crf.likelihood import Borders, ChainLikelihood
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import skip_chain_template
from herdner.inference.linear_chain import forward_backward, score_linked_spans, span_log_probability, viterbi
faulthandler.enable()
rng = np.random.default_rng(0)
WRONG = [-1, 2**31 - 1, -2**31, 2_000_000_000, 5000, 12]

def try_all(function, *options):
    "Call a function with each of the options; a Python error is the expected outcome of most."
    for option in options:
        with suppress(Exception):
            function(option)

def infer(graph):
    "Run a backend of each kind of loop on a graph."
    for name in ("gibbs", "herded-gibbs", "mean-field", "icm", "max-product", "sum-product", "belief-propagation", "viterbi", "exact"):
        with suppress(Exception):
            options = {} if name in ("viterbi", "exact") else {"n_sweeps": 2}
            herdner.make_backend(name, **options).infer(graph, 0)

def linked():
    "Return a chain with links, and one factor of three variables."
    chain = herdner.chain_graph(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)), [0, 5, 12])
    links = herdner.TableFactors([[0, 6], [1, 9], [3, 11]], rng.normal(size=(1, 3, 3)))
    large = herdner.TableFactors([[0, 1, 2]], rng.normal(size=(1, 3, 3, 3)))
    return herdner.FactorGraph(chain.domains, [*chain.factors, links, large])

def while_another_thread_writes(function, array, values):
    "Call a function many times while another thread writes to its array."
    stop, before = threading.Event(), array.copy()
    def write():
        while not stop.is_set():
            for value in values:
                array[...] = value
            array[...] = before
    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(60):
        with suppress(Exception):
            function()
    stop.set()
    thread.join()
"""

CASES = {
    "links of a skip-chain model past the end": """
for ends in ([[0, 12]], [[-7, 3]], [[0, 2**31 - 1]], [[5, 5]], [[9, 2]], [[0, 2, 4]], [0, 3]):
    for size in (3, 4, 2, 200):
        table = LinkTable(skip_chain_template(), rng.normal(size=(size, size)))
        model = SkipChainModel(rng.normal(size=(3, 3)), np.zeros(3), np.zeros(3), (table,))
        for kind in (np.int32, np.int64):
            links = [np.array(ends, kind)]
            unary = rng.normal(size=(12, 3))
            with suppress(Exception):
                score_linked_spans(
                    unary, unary.copy(), model.transitions, np.array([0, 5, 12]), np.zeros(12, np.int32),
                    np.array([1]), np.array([3]), links, [table.table], np.full((12, 3), 1 / 3), None,
                )
            with suppress(Exception):
                infer(model.compile(unary, np.array([0, 5, 12]), links))
            with suppress(Exception):
                infer(model.unroll(unary, np.array([0, 5, 12]), links))
""",
    "a table graph with hostile links": """
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains
for offsets in ([0, 5, 12], [0, 5, 500], [0, 5], [-5, 12], [0, 12, 5, 12], []):
    for scopes in ([[0, 6]], [[0, 12]], [[-1, 3]], [[0, 2**31 - 1]]):
        for table in (0, 1, -1, 2**31 - 1):
            for edges in (None, [0] * 12, [7] * 12, [-1] * 12, [0]):
                for size in (3, 4):
                    form = ChainForm(None, np.array(offsets, np.int64), rng.normal(size=(12, 3)),
                                     rng.normal(size=(1, size, size)), None if edges is None else np.array(edges, np.int32), 0.0)
                    chains = LinkedChains(form, np.array(scopes, np.int32), np.array([table], np.int32), np.zeros((1, 3, 3)))
                    with suppress(Exception):
                        herdner.make_backend("sum-product", n_sweeps=2).infer(herdner.TableGraph(linked, lambda: chains))
""",
    "training data and borders that do not fit": """
features = np.array([0, 2, 4, 7, 8]), np.array([5, 6, 5, 7, 9, 5, 6, 7], np.uint64)
allowed = np.eye(3, dtype=np.uint8)[[0, 1, 2, 1]]
data = ChainData.of([features] * 3, [np.array([0, 2, 4])] * 3, [allowed] * 3, ["O", "B", "I"], min_freq=1)
vector = rng.normal(size=data.n_features + int(data.transitions.sum()))
ChainLikelihood(data)(vector)
for size in (1, 2, 4, 5, 300):
    try_all(lambda borders: ChainLikelihood(data, borders=borders)(vector),
            Borders(np.zeros((3, 3)), np.zeros(size), np.zeros(3)), Borders(np.zeros((3, 3)), np.zeros(3), np.zeros(size)),
            Borders(np.zeros((size, size)), np.zeros(size), np.zeros(size)))
for name in data.__dataclass_fields__:
    value = getattr(data, name)
    if not isinstance(value, np.ndarray):
        continue
    for wrong in (-1, 12, 5000):
        for place in (0, value.size - 1):
            altered = value.astype(np.int64) if value.dtype.kind == "b" else value.copy()
            with suppress(Exception):
                altered.flat[place] = wrong
                changed = replace(data, **{name: altered.astype(value.dtype)})
                with suppress(Exception):
                    changed.occurring_weights(np.array([True, False, True]))
                ChainLikelihood(changed)(vector)
    for altered in (value[:-1], value[:0], np.concatenate([value] * 3), value[::-1]):
        with suppress(Exception):
            changed = replace(data, **{name: altered})
            with suppress(Exception):
                changed.occurring_weights(np.array([True, False, True]))
            ChainLikelihood(changed)(vector)
for starts in ([0, 2, 4, 7, 9], [0, 2, 4, 7, 5000], [-4, 2, 4, 7, 8], [0, 2], [8, 7, 4, 2, 0]):
    try_all(lambda keys: ChainLikelihood(ChainData.of([keys], [np.array([0, 2, 4])], [allowed], ["O", "B", "I"], min_freq=1)),
            (np.array(starts), features[1]))
for offsets in ([0, 2, 5000], [0, 9], [-3, 4], [2, 4], [4, 0], [0, 5]):
    try_all(lambda sentence: ChainLikelihood(
        ChainData.of([features], [sentence], [allowed], ["O", "B", "I"], min_freq=1))(vector), np.array(offsets))
""",
    "copies of a graph whose arrays are altered": """
for copier in (copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))):
    for name, wrong in (("scopes", 2e9), ("scopes", -1), ("scopes", 12), ("table_of_factor", 7), ("scale", np.nan)):
        graph = copier(linked())
        with suppress(Exception):
            array = getattr(graph.factors[1], name)
            array[(5,) + (0,) * (array.ndim - 1)] = wrong
            infer(graph)
for group in (1, 2, 3):
    for name in ("scopes", "table_of_factor"):
        for wrong in (2e9, -1):
            graph = copy.copy(linked())
            array = np.array(getattr(graph.factors[group], name))
            array[-1] = wrong
            object.__setattr__(graph.factors[group], name, array)
            infer(graph)
""",
    "attributes of a graph that are replaced": """
graph = linked()
for sizes in ([3] * 5, [3] * 50, [2] * 12, [300] * 12, [0] * 12, [-1] * 12):
    altered = copy.copy(graph)
    domains = copy.copy(graph.domains)
    object.__setattr__(domains, "sizes", np.array(sizes, np.int32))
    object.__setattr__(altered, "domains", domains)
    infer(altered)
compiled = herdner.compile_tables(herdner.ising(0.3, np.zeros((4, 5))))
for name in ("starts", "others", "row_at", "sizes", "widths", "unary_at", "rows", "unary"):
    for wrong in WRONG[:3]:
        for change in (lambda a: a[:-1], lambda a: np.concatenate([a, a]), lambda a: np.full_like(a, wrong)):
            with suppress(Exception):
                value = change(getattr(compiled.conditionals, name))
                altered = herdner.compile_tables(herdner.ising(0.3, np.zeros((4, 5))))
                altered.__dict__["conditionals"] = replace(compiled.conditionals, **{name: value})
                infer(altered)
""",
    "weights of features that do not fit": """
from herdner.crf.weights import ChainWeights
from herdner.ner.features import FeaturePlan, make_extractor
from herdner._ext.feature_tables import FeatureWeights
weights = ChainWeights(("O", "B"), np.zeros((2, 2)), np.array([3, 5, 9], np.uint64), np.array([0, 1, 3, 4], np.uint32),
                       np.array([0, 1, 0, 1], np.uint8), rng.normal(size=4))
for altered in (replace(weights, entry_tags=np.array([0, 200, 0, 255], np.uint8)),
                replace(weights, starts=np.array([0, 1, 3, 4_000_000_000], np.uint32)),
                replace(weights, starts=np.array([0, 1, 3], np.uint32)), replace(weights, starts=np.array([9, 1, 3, 4], np.uint32)),
                replace(weights, entry_weights=np.zeros(1)), replace(weights, keys=np.array([3, 3, 3], np.uint64))):
    for n_labels in (2, 0, -1, 2**40):
        with suppress(Exception):
            FeatureWeights(altered.keys, altered.starts, altered.entry_tags, altered.entry_weights, n_labels)
""",
    "tokens whose number changes": """
class Shrinking(list):
    def __len__(self):
        return super().__len__() + 1000
class Growing(list):
    calls = 0
    def __len__(self):
        Growing.calls += 1
        return super().__len__() + Growing.calls
class Numpy(np.ndarray):
    def __len__(self):
        return 10**6
tagger = herdner.load("en")
tagged = tagger.tag("Ada Lovelace met Charles Babbage in London.")
for kind in (Shrinking, Growing, lambda tokens: np.array(tokens).view(Numpy), lambda tokens: iter(tokens)):
    with suppress(Exception):
        document = replace(tagged, tokens=kind(tagged.tokens))
        tagger.tag(document)
        tagger.find_links(document)
    altered = copy.copy(tagged)
    with suppress(Exception):
        object.__setattr__(altered, "tokens", kind(tagged.tokens))
        tagger.tag(altered)
        tagger.find_links(altered)
for name in ("token_starts", "token_ends", "sentence_offsets"):
    for wrong in WRONG:
        for copier in (copy.copy, copy.deepcopy, lambda document: pickle.loads(pickle.dumps(document))):
            altered = copier(tagged)
            with suppress(Exception):
                array = np.array(getattr(altered, name))
                array[-1] = wrong
                object.__setattr__(altered, name, array)
                tagger.find_links(altered)
                tagger.tag(altered)
""",
    "an influence matrix that is altered": """
from herdner import dobrushin
for name in ("starts", "sources", "values"):
    for wrong in WRONG:
        for copier in (copy.copy, copy.deepcopy):
            influence = copier(dobrushin.tightest_influence(herdner.ising(0.3, np.zeros((4, 5)))))
            array = np.array(getattr(influence, name))
            array[len(array) // 2] = wrong
            object.__setattr__(influence, name, array)
            for function in (dobrushin.optimise_scan, dobrushin.coupling_bounds, lambda influence: influence.total,
                             lambda influence: dobrushin.dobrushin_variation(influence, np.arange(20))):
                with suppress(Exception):
                    function(influence)
""",
    "arrays that release their memory": """
from dataclasses import fields, is_dataclass

def release(value, depth=0):
    "Make all arrays in an object give up the memory that they share with compiled objects."
    if isinstance(value, np.ndarray):
        value.__setstate__((1, (0,), value.dtype, False, b""))
    elif isinstance(value, tuple | list) and depth < 5:
        for item in value:
            release(item, depth + 1)
    elif hasattr(value, "__reduce__") and type(value).__module__.startswith("herdner._ext"):
        release(gc.get_referents(value), depth + 1)
        with suppress(TypeError):
            release(value.__reduce__()[1], depth + 1)
    elif is_dataclass(value) and depth < 5:
        for field in fields(value):
            release(getattr(value, field.name, None), depth + 1)
        release(list(getattr(value, "__dict__", {}).values()), depth + 1)

from herdner import dobrushin
from herdner._ext.ascent import Ascent
from herdner._ext.gibbs import Engine
from herdner._ext.influence import multiply
for unary in (np.zeros((20, 25)), np.zeros((70, 80))):
    model, influence = herdner.ising(0.3, unary), dobrushin.tightest_influence(herdner.ising(0.01, unary))
    graph, engine, state = herdner.compile_tables(model), Engine(model.factors), np.zeros(unary.size, np.uint16)
    log_potential = engine.log_potential_of(state)
    conditionals, rows, matrix = graph.conditionals, graph.conditionals.compiled, influence.matrix
    for value in (graph, conditionals, influence, rows, matrix, list(model.factors)):
        release(value)
    junk = [np.full(2 * unary.size + 1, 2**61) for _ in range(40)]
    x, to = np.ones(unary.size), np.zeros(unary.size)
    Ascent(rows, np.zeros(unary.size, np.int32)).climb(0)
    multiply(matrix, x, to)
    assert engine.log_potential_of(state) == log_potential
""",
    "memory of arrays that is released through their base": """
graph = linked()
kept = [factors.tables for factors in graph.factors] + [graph.factors[1].scopes]
before = [array.copy() for array in kept]
for array in kept:
    base = array
    while base is not None:
        if isinstance(base, memoryview):
            base.release()
            break
        base = getattr(base, "base", None)
junk = [np.full(400, 2**61) for _ in range(400)]
assert all(np.array_equal(array, values) for array, values in zip(kept, before, strict=True))
""",
    "copies of copies of copies": """
from herdner import dobrushin
rows = herdner.compile_tables(herdner.ising(0.3, np.zeros((4, 5)))).conditionals.compiled
matrix = dobrushin.tightest_influence(herdner.ising(0.1, np.zeros((4, 5)))).matrix
for _ in range(60_000):
    rows, matrix = copy.copy(rows), copy.copy(matrix)
""",
    "factors in the engine whose attributes are wrong": """
from types import SimpleNamespace
from herdner._ext.gibbs import Engine
class Liar(np.ndarray):
    ndim, size, shape, strides = 1, 4, (4,), (8,)
names = ("arity", "scopes", "rows", "table_of_factor", "scale", "tables")
group = linked().factors[2]
valid = {name: getattr(group, name) for name in names}
Engine([SimpleNamespace(**valid)]).log_potential_of(np.zeros(12, np.uint16))
wide = np.broadcast_to(1.0, (1, 3))
for scale in (wide, np.ones((1, 3)), np.ones((3, 1)), np.ones(4_000_000)[::2_000_000], np.ones(1).view(Liar), np.ones((3, 9)).view(Liar)):
    for counts in (None, np.zeros((1, 9)), np.zeros((1, 9)).view(Liar), np.zeros(1).view(Liar)):
        with suppress(Exception):
            Engine([SimpleNamespace(**valid | {"scale": scale})], () if counts is None else [counts]).log_potential_of(np.zeros(12, np.uint16))
""",
    "offsets that another thread changes": """
n = 3000
unary, table = rng.normal(size=(n, 3)), rng.normal(size=(3, 3))
offsets = np.arange(0, n + 1, 5)
states, starts = np.zeros(n, np.int32), np.arange(0, n, 5)
for function in (lambda: viterbi(unary, table, offsets), lambda: forward_backward(unary, table, offsets, transition_counts=True),
                 lambda: span_log_probability(unary, table, offsets, states, starts, starts + 2)):
    while_another_thread_writes(function, offsets, (-1, n, 2**40, 0))
    while_another_thread_writes(function, unary, (np.nan, np.inf, -np.inf, 1e308))
for array in (states, starts):
    while_another_thread_writes(lambda: span_log_probability(unary, table, offsets, states, starts, starts + 2), array, (-1, 2**30))
edges, tables = np.zeros(n, np.int32), rng.normal(size=(2, 3, 3))
for function in (lambda: viterbi(unary, tables, offsets, edges), lambda: forward_backward(unary, tables, offsets, edges, edges=True)):
    while_another_thread_writes(function, edges, (-1, 2, 2**31 - 1, -2**31))
""",
    "lists that change while a call reads them": """
from herdner._ext.identity import MentionForm, cluster_mentions
from herdner._ext.replicas import Replicas
from herdner._ext.tags import make_entities, with_name_ids
from herdner._ext.text import SentenceLoop

class Set:
    "Entity whose attribute empties a list when it is set."
    start = property(lambda self: 0, lambda self, value: items.clear())

class Read:
    "Entity whose attribute empties a list when it is read."
    start = property(lambda self: items.clear() or 0)
    end, label, text, confidence = 3, "PER", "Ada", None

class Title:
    "Title whose comparison empties a list."
    def __hash__(self):
        return hash("Mr.")
    def __eq__(self, other):
        items.clear()
        return False

class Scope(list):
    "Scope that is valid when it is read for the first time."
    n_reads = 0
    def __iter__(self):
        self.n_reads += 1
        return iter([0, 1] if self.n_reads < 2 else [-1, -2])

class Table:
    "Table that empties a list when it is converted to an array."
    def __array__(self, dtype=None, copy=None):
        items.clear()
        return np.zeros((2, 2))

form = MentionForm(("Ada",), "PER", True, "", "", frozenset(), False, "a", "", frozenset(), ("Ada",), frozenset(), "", "", False)
starts = np.arange(0, 20_000, 4)
for _ in range(20):
    items = [(0, 1, "PER")] * 5000
    with suppress(Exception):
        make_entities(Set, items, "Ada", np.array([0]), np.array([3]))
    items = list(range(5000))
    with suppress(Exception):
        with_name_ids((Read(),) * 5000, items)
    items = [form] * 5000
    with suppress(Exception):
        cluster_mentions("Ada", (Read(),) * 5000, items, lambda *_: None)
    items = ["Mr."] * 5000
    with suppress(Exception):
        SentenceLoop([Title()], [], ".", "", "").offsets("Mr. " * 5000, items, starts, starts + 3)
    with suppress(Exception):
        made = Replicas([2] * 3, [Scope([0, 1])], [rng.normal(size=(2, 2))], [[0], [1], [2]], np.ones(2), np.ones(2), 0)
        made.advance(50)
        assert (made.states >= 0).all()
    items, ends = [Table(), *[np.zeros((2, 2))] * 3], [[0, 1], [1, 2], [2, 3], [0, 3]]
    with suppress(Exception):
        Replicas([2] * 4, ends, items, [[0], [1], [2], [3]], np.ones(2), np.ones(2), 0).advance(50)
""",
    "sizes whose product exceeds 64 bits": """
from herdner._ext.elimination import CompiledBucketTree
from herdner._ext.replicas import Replicas

sizes = [1, 2**20, 2**20, 2**23, 2]
tables = [np.zeros([1, size]) for size in sizes[1:]]
for order in ([0, 4, 3, 2, 1], [0, 3, 4, 2, 1]):
    with suppress(Exception):
        Replicas(sizes, [[0, v] for v in range(1, 5)], tables, [order], np.ones(1), np.ones(1), 0).advance(1)
    with suppress(Exception):
        at = np.cumsum([0, *sizes[1:]])
        CompiledBucketTree(sizes, order, range(0, 10, 2), [0, 1, 0, 2, 0, 3, 0, 4], at, np.zeros(at[-1]))
        raise SystemExit("the separator has 2^64 states")
""",
    "memory that was not made from an array": """
from herdner._ext.memory import sealed
kind = type(sealed([np.zeros(3)]).base)
for memory in (kind.__new__(kind), sealed([np.array(1.0)]).base):
    try_all(lambda function: function(memory), len, memoryview, bytes, np.asarray, list)
""",
    "classes whose objects must not begin as zeros": """
import os, time, types
from herdner._ext.tags import make_entities, make_spans, with_name_ids
one, two = np.array([0]), np.array([1])
for kind in (time.struct_time, os.stat_result):
    with suppress(Exception):
        repr(make_spans(kind, one, two, ["PER"]))
for kind in (types.GeneratorType, types.CoroutineType, type(iter([])), type(iter({})), types.MethodWrapperType):
    with suppress(Exception):
        make_entities(kind, [(0, 1, "PER")], "Ada", one, two)
with suppress(Exception):
    with_name_ids((iter([]),), [0])
""",
    "updates without a second vector": """
from herdner._ext.online import OnlineChains, arow_epoch, margin_epoch, sgd_epoch
items = np.array([0, 1, 2, 0])
data = OnlineChains(np.array([0, 4]), np.arange(5), np.arange(4, dtype=np.int32), None, items.astype(np.uint8),
                    items.astype(np.int32), np.ones((4, 3), np.uint8), np.ones((3, 3), bool), np.zeros((3, 3)))
for weights, other in ((np.zeros(13), None), (None, np.zeros(13))):
    try_all(lambda kind: margin_epoch(data, np.array([0]), np.ones(1), weights, other, 1.0, kind, 1.0, False), 0, 1, 2, 3)
    try_all(lambda gamma: arow_epoch(data, np.array([0]), np.ones(1), weights, other, gamma), 1.0)
    try_all(lambda rate: sgd_epoch(data, np.array([0]), np.ones(1), weights, 0.0, rate, 0.0, 0.0), 1.0)
""",
    "arguments whose attributes change": """
from types import SimpleNamespace
import herdner.inference.gibbs.run as gibbs_run
from herdner._ext.conditionals import CompiledConditionals
from herdner._ext.gibbs import Engine
from herdner._ext.likelihood import TrainingData, add_gradient

class Attributes:
    "Object with other values of some attributes; a function is called with the number of the access."
    def __init__(self, base, **values):
        self.__dict__.update(_base=base, _values=values, _counts=dict.fromkeys(values, 0))
    def __getattr__(self, name):
        value = self._values.get(name, self._base)
        if value is self._base:
            return getattr(self._base, name)
        self._counts[name] += 1
        return value(self._counts[name]) if callable(value) else value

class Long:
    def __len__(self):
        return 2**28

n = 1000
data = SimpleNamespace(
    sentence_offsets=np.array([0, n]), starts=np.arange(n + 1), middles=np.arange(n), values=None,
    uses=np.full(n, 2**28 - 5, np.int32), dense=np.zeros((0, 3)), allowed=np.ones((n, 3), np.uint8),
    states=np.zeros(n, np.int32), entry_tags=np.zeros(1, np.uint8))
with suppress(Exception):
    made = TrainingData(Attributes(data, entry_tags=lambda count: Long() if count == 1 else data.entry_tags), 0, 1)
    tables = np.zeros((1, 3, 3)), np.zeros(3), np.zeros(3), np.zeros((0, 4)), np.zeros(1), np.zeros((3, 3))
    add_gradient(made, np.ones(1), np.zeros((0, 4)), np.zeros(1), *tables)

recorded, loops = [], gibbs_run.loops
def record_arguments(factors, counts=()):
    def begin(setup, arrays, instructions=""):
        recorded[:] = factors, setup, arrays
        raise InterruptedError
    return SimpleNamespace(begin=begin)
gibbs_run.loops = SimpleNamespace(**{**vars(loops), "Engine": record_arguments})
n = 200_000
graph = herdner.chain_graph(rng.normal(size=(n, 3)), rng.normal(size=(3, 3)))
with suppress(InterruptedError):
    herdner.make_backend("gibbs", n_sweeps=300).infer(graph, 0)
gibbs_run.loops = loops
factors, setup, arrays = recorded
def begun(setup, arrays):
    engine = Engine(factors)
    with suppress(Exception):
        engine.begin(setup, arrays)
    return engine
for lengths in ({"state": lambda count: Long() if count > 1 else arrays.state}, {}):
    engine = begun(Attributes(setup, n_threads=lambda count: min(count, 2) ** 30), Attributes(arrays, **lengths))
    try_all(engine.state, 2**28)
    try_all(lambda thread: engine.advance_parallel(thread, 0, 1), 5)
engine = Engine(factors)
def begin_again(count):
    with suppress(Exception):
        engine.begin(setup, arrays)
    return setup.n_steps
def advance(count):
    with suppress(Exception):
        engine.advance(0, n)
with suppress(Exception):
    engine.begin(Attributes(setup, n_steps=begin_again, order=np.full(n, 2**30, np.int32), betas=advance), arrays)
values = list(setup.form.compiled.__reduce__()[1])
values[2] = values[2][::-1].copy()
with suppress(ValueError):
    form = SimpleNamespace(compiled=CompiledConditionals(*values))
    engine = begun(Attributes(setup, form=form, n_threads=2, colour_starts=np.array([0, n // 2, n])), arrays)
    threads = [threading.Thread(target=engine.advance_parallel, args=(thread, 0, 260)) for thread in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
""",
    "numbers whose products overflow": """
from herdner._ext import bundles, gibbs, quasi_newton
d, rows = 3000, np.zeros((4, 3000), np.float32)
vectors, sums = [np.ones(d) for _ in range(6)], np.zeros((3, 8))
try_all(lambda slot: quasi_newton.measure(*vectors[:5], rows, slot, np.array([0, 1], np.int32), vectors[5], sums, 0, 3),
        2**30, 2**30 + 1, 2**31 - 1, 2)
assert not rows.any() and not sums.any()
quasi_newton.measure(*vectors[:5], rows, 1, np.array([0, 1], np.int32), vectors[5], sums, 0, 3)
assert sums.any()
try_all(lambda n: gibbs.initialise_fractions(1, np.zeros(2**24, np.uint32), None, 2**24, n), 2, 2**40)
uses, starts = np.array([0, 1] * 64, np.int32), np.arange(0, 129, 2)
try:
    bundles.bundle(uses, starts, None, 0, 2**31 - 1)
except ValueError as error:
    assert str(error) == "there are too many features"
else:
    raise AssertionError("the indices of bundles must fit into 32 bits")
""",
    "indices of variables that do not exist": """
from herdner._ext import influence, variation
matrix = influence.InfluenceMatrix(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2))
for support in ([0, 5], [-1]):
    try:
        variation.walk_recorded(matrix, np.zeros(3, np.int32), np.ones(2), np.ones(2), np.array(support, np.int32), np.zeros(4))
    except IndexError:
        pass
    else:
        raise AssertionError("the support must be variables of the matrix")
""",
    "lists that finalisers change": """
from herdner._ext.links import company_links
from herdner._ext.spellings import spell_tokens

class Garbage:
    def __del__(self):
        tokens.clear()

gc.disable()
for threshold in range(1, 300):
    tokens = ["Alpha", "Beta", "x"] * 30
    borders, spelled = np.array([0, 90]), spell_tokens(tokens)
    garbage = Garbage()
    garbage.itself = garbage
    del garbage
    gc.enable()
    gc.set_threshold(threshold)
    with suppress(ValueError):
        company_links(spelled, tokens, borders, None, frozenset(["Inc"]), frozenset(["Inc", "Beta"]), 3)
    gc.disable()
    gc.collect()
""",
    "tokens whose hash reads further tokens": """
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import Lexicon
extractor = make_extractor(default_plan(), Lexicon())

class Token:
    def __hash__(self):
        extractor.words([f"inner{i}" for i in range(65_500)])
        return hash("The")
    def __eq__(self, other):
        return other == "The"

extractor.words(["The", *[f"early{i}" for i in range(65_000)]])
with suppress(TypeError):
    extractor.words([Token(), *[f"outer{i}" for i in range(66_000)]])
    raise SystemExit("a token is not a string")
""",
    "a descent that several threads use": """
from herdner._ext.descent import Descent
from herdner._ext.influence import InfluenceMatrix
n, seen = 200_000, []
matrix = InfluenceMatrix(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
order = np.arange(n, dtype=np.int32)
for _ in range(10):
    descent, barrier = Descent(matrix), threading.Barrier(4)
    def use():
        barrier.wait()
        with suppress(ValueError):
            seen.append(descent.variation(order, order, np.ones(n)))
    threads = [threading.Thread(target=use) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert descent.reset() == n
assert seen
""",
    "arrays of positions that another thread changes without the interpreter": """
import time
from types import SimpleNamespace
from numpy.lib.stride_tricks import as_strided
from herdner._ext import conditionals, factors, influence, layout, mean_field
from herdner._ext.attributes import add_scores
from herdner._ext.bundles import bundle
from herdner._ext.elimination_order import GreedyOrder
from herdner._ext.max_product import MaxProductLoop
from herdner._ext.mean_field import expected
from herdner._ext.tags import read_spans
from herdner._ext.text import SentenceLoop

def while_numpy_writes(function, array, value, n_good):
    "Call a function while another thread writes to its array in calls of NumPy, mostly the original values."
    stop = threading.Event()
    rows = np.stack([array] * n_good + [np.full_like(array, value)])
    target = as_strided(array, (100_000 // n_good, *rows.shape), (0, 0, *array.strides))
    def write():
        while not stop.is_set():
            np.copyto(target, rows)
    thread = threading.Thread(target=write)
    thread.start()
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        with suppress(Exception):
            function()
    stop.set()
    thread.join()

uses, borders = np.zeros(64, np.int32), np.arange(0, 65, 32)
while_numpy_writes(lambda: bundle(uses, borders, None, 50, 50), uses, 2**30, 1)
neighbours = np.array([1, 0], np.int32)
while_numpy_writes(lambda: GreedyOrder(np.arange(3), neighbours, np.ones(2), 0, 1, 60.0, 0.0), neighbours, 2**30, 1)
scope = np.array([0, 1, 1, 0], np.int32)
slots = SimpleNamespace(sizes=np.full(2, 2, np.int32), scope=scope, factor_at=np.array([0, 2, 4]),
                        table_at=np.zeros(4, np.int64), tables=np.zeros(4), scale=np.ones(2))
while_numpy_writes(lambda: MaxProductLoop(slots, np.zeros((2, 2)), 1.0), scope, 2**30, 1)
q, pairs, tables = np.full((2, 2), 0.5), np.array([[0, 1]] * 1000, np.int32), np.zeros(1000, np.int32)
sizes, ones = np.full(2, 2, np.int32), np.ones(1000)
while_numpy_writes(lambda: expected(q, sizes, pairs, tables, ones, np.ones((1, 4)), 0), tables, 2**30, 1)
pairs, to, spans = np.stack([np.arange(999), np.arange(1, 1000)], 1).astype(np.int32), np.zeros(1000, np.int32), np.arange(0, 1001, 8)
owners, scale, rows = np.arange(0, 1999, 2), np.ones(1000), np.ones((1000, 2))
first = np.concatenate([[0], np.cumsum(np.bincount(pairs.ravel()))])
for function in (
    lambda: layout.order_paths(1000, pairs, np.empty(1000, np.int64), np.empty(1001, np.int64)),
    lambda: influence.symmetric_rows(1000, pairs, np.ones(999)),
    lambda: conditionals.fill_incidences(
        [(pairs, to[:999], np.array([[0, 4], [0, 4]]), np.ones((2, 2), np.int32), np.ones((2, 1)))],
        first, None, np.zeros(1000)),
    lambda: factors.find_misfit(pairs, np.full(1000, 2, np.int32), (2, 2)),
):
    while_numpy_writes(function, pairs, 2**30, 1)
for function in (
    lambda: layout.add_rows(rows, to, to, scale, rows.copy()),
    lambda: conditionals.add_unary(np.zeros(1000), None, to[:, None], to, scale, rows), lambda: mean_field.entropy(rows, to, 0),
    lambda: conditionals.colour(np.minimum(owners, 1000), to), lambda: conditionals.sort_distinct(np.array([0, 1000]), to),
    lambda: read_spans(to, np.array([66], np.uint8), np.array([1], np.int32), ["", "PER"], np.array([0, 1000])),
):
    while_numpy_writes(function, to, 2**30, 1)
for function in (
    lambda: add_scores(np.arange(1001), to, None, spans, np.zeros(1000, np.uint8), np.ones(1000), np.zeros((1000, 2))),
    lambda: conditionals.sort_distinct(spans, to), lambda: influence.bound_binary(spans, np.ones(1000), np.ones(125), False),
):
    while_numpy_writes(function, spans, 2**40, 1)
starts = np.arange(0, 5000, 5)
while_numpy_writes(lambda: SentenceLoop(["Mr."], ["The"], ".", ")", "(").offsets("ab. \\n" * 1000, ["ab."] * 1000, starts, starts + 3), starts, 2**40, 20)
""",
    "tables of a count of states that another thread changes": """
import time
from numpy.lib.stride_tricks import as_strided
from herdner.studies.convergence import count_visits, counts

kept, make, stop = [], counts.CountingTables.of, threading.Event()
def record(*arguments):
    kept.append(make(*arguments))
    return kept[-1]
def write():
    keys = kept[-1].keys.reshape(-1)
    rows = np.stack([keys] * 100 + [np.full_like(keys, 2**40)] * 2 + [keys] * 100)
    target = as_strided(keys, (500, *rows.shape), (0, 0, *keys.strides))
    while not stop.is_set():
        np.copyto(target, rows)
counts.CountingTables.of = record
count = lambda: count_visits(herdner.ising(0.3, np.zeros((2, 4))), herdner.dhg(n_bins=4), [2**24], seed=1)
expected = count().visits
thread = threading.Timer(0.05, write)
thread.start()
assert (count().visits == expected).all()
stop.set()
thread.join()
""",
    "starts of rows that are not inside their arrays": """
from herdner._ext.conditionals import normalise, sort_distinct
members = np.arange(4, dtype=np.int32)
for starts in ([0, -1, 4], [0, 5], [1, 4], [-1, 4], [0, 4, 2]):
    try:
        sort_distinct(np.array(starts), members)
        raise SystemExit("the starts must rise from 0 to the number of members")
    except ValueError:
        pass
rows, sizes, widths = np.zeros(64), np.array([4], np.int32), np.array([4], np.int32)
for at in (-1, -64, 61, 2**62):
    try:
        normalise(rows, np.array([at]), sizes, widths, np.zeros(1))
        raise SystemExit("a row must be inside rows")
    except IndexError:
        pass
""",
    "documents that another thread changes": """
tagger = herdner.load("en")
tagged = tagger.tag("Ada Lovelace met Charles Babbage in London. Lovelace wrote to Babbage. " * 20)
offsets = np.array(tagged.sentence_offsets)
object.__setattr__(tagged, "sentence_offsets", offsets)
while_another_thread_writes(lambda: tagger.find_links(tagged), offsets, (-1, 2**40, 0))
layer = herdner.SkipChainLayer(["O", "B-PER", "I-PER"])
unary = rng.normal(size=(len(tagged.tokens), 3))
while_another_thread_writes(lambda: layer.apply(unary, list(tagged.tokens), offsets), offsets, (-1, 2**40))
while_another_thread_writes(lambda: layer.links(list(tagged.tokens), offsets), offsets, (-1, 2**40))
while_another_thread_writes(lambda: tagger.predict_marginals([tagged]), offsets, (-1, 2**40))
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_call_ends_the_process(case: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + CASES[case]], cwd=TESTS, capture_output=True, text=True, timeout=4 * PATIENCE
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_compiled_functions_do_not_read_indices_in_the_memory_of_the_caller() -> None:
    """Arguments with indices are copied (`own`, `owned`), so no function that Python can call declares memory views."""
    internal_class = re.compile(r"@cython\.internal\n(@.*\n)*cdef class .*(\n| .*)*")
    for path in (TESTS.parent / "cython_ext").glob("*.pyx"):
        for match in re.finditer(r"^ *def [^:]+?\(.*?\):$", internal_class.sub("", path.read_text()), re.M | re.S):
            assert not re.search(r"const u?int(16|32|64)_t *\[[^\]]*\] (?!keys|values)", match[0]), (
                path.name,
                match[0],
            )


def owners(array: np.ndarray) -> list[object]:
    """Return the objects that lead from an array to its memory."""
    found: list[object] = [array]
    while (base := getattr(found[-1], "base", None)) is not None or isinstance(found[-1], memoryview):
        found.append(found[-1].obj if isinstance(found[-1], memoryview) else base)
    return found


def test_no_object_behind_a_frozen_array_gives_a_writable_view() -> None:
    array = frozen(np.arange(4.0), np.float64, "numbers")
    _, memory = owners(array)  # without a `memoryview`, which could be released
    assert memoryview(memory).readonly
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(memory, np.float64)[0] = 1.0
    with pytest.raises(TypeError):
        type("Other", (type(memory),), {})
    assert not [name for name in dir(memory) if not name.startswith("__")]


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_of_compiled_objects_are_made_by_their_constructors(copier) -> None:
    compiled = herdner.compile_tables(herdner.ising(0.3, np.zeros((4, 5)))).conditionals.compiled
    assert type(copier(compiled)) is type(compiled)
    matrix = Influence.of_matrix([[0.0, 0.5], [0.25, 0.0]]).matrix
    assert type(copier(matrix)) is type(matrix)


def test_compiled_objects_refuse_arrays_that_do_not_fit() -> None:
    rows = herdner.compile_tables(herdner.ising(0.3, np.zeros((4, 5)))).conditionals
    values = {name: np.array(getattr(rows, name)) for name in ("starts", "others", "row_at", "widths")}
    for name, array in values.items():
        array[-1] += 1_000_000
        altered = {field: getattr(rows, field) for field in Conditionals.__dataclass_fields__} | {name: array}
        with pytest.raises(ValueError, match=r"must|need"):
            _ = Conditionals(**altered).compiled
