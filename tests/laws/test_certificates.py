"""The backend dogs: its certificate holds, states when it is vacuous, and its records belong to its scan."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import Oracle
from reference_dobrushin import influence_matrix, joint, law_after, marginal_distance
from sound_bounds import wide_graph

import herdner
from herdner import DoGS, Record, chain_graph, ising, make_backend
from herdner.dobrushin import (
    Certificate,
    TargetVariables,
    dobrushin_variation,
    exact_influence,
    optimise_scan,
    selected_variables,
    tightest_influence,
    uncertain_variables,
)
from herdner.graph import FactorGraph, TableFactors, boltzmann_machine
from herdner.graph.scan import fixed_scan, systematic_scan
from herdner.inference import Interrupted
from herdner.inference.backends.dogs import allowed_influence
from herdner.inference.gibbs import linear_annealing


def weak_graph() -> FactorGraph:
    rng = np.random.default_rng(2)
    couplings = np.triu(rng.uniform(-0.2, 0.2, (6, 6)), 1)
    return boltzmann_machine(couplings + couplings.T, rng.normal(0, 0.5, 6), (-1, 1))


def law_of(graph: FactorGraph, order, p) -> np.ndarray:
    law = np.eye(p.size).reshape(-1, *p.shape)
    for i in order:
        law = law_after(p, law, int(i))
    return law


@pytest.mark.parametrize("n_steps", [1, 3, 8, 20])
@pytest.mark.parametrize("targets", ["all", "variables(2)", "variables(0, 5)"])
def test_the_certificate_holds_for_the_exact_law(monkeypatch, n_steps: int, targets: str) -> None:
    """Compute the exact distribution of the state after the scan of the backend, from every start."""
    graph, seen = weak_graph(), []
    monkeypatch.setattr(
        herdner.inference.backends.dogs, "fixed_scan", lambda order: seen.append(order) or fixed_scan(order)
    )
    result = DoGS(n_sweeps=3, n_steps=n_steps, targets=TargetVariables.from_text(targets)).infer(graph, 1)
    certificate, p = result.certificate, joint(graph)
    chosen = range(6) if targets == "all" else TargetVariables.from_text(targets).variables
    distance = marginal_distance(law_of(graph, seen[-1], p), p, tuple(chosen))
    assert isinstance(certificate, Certificate)
    assert distance <= certificate.bound <= certificate.systematic
    assert certificate.trivial == len(chosen)
    assert certificate.vacuous == (certificate.bound >= len(chosen))
    assert result.n_updates == 3 * n_steps


def test_measured_marginals_are_within_the_certificate() -> None:
    graph = ising(0.15, np.linspace(-1, 1, 9).reshape(3, 3))
    exact = Oracle.of_graph(graph).marginal(4)
    result = DoGS(n_sweeps=40_000, n_steps=12, targets=selected_variables(4)).infer(graph, 3)
    assert result.certificate.bound < 0.07
    assert abs(result.marginals[4, 1] - exact[1]) <= result.certificate.bound + 5 * 0.5 / np.sqrt(40_000)


def test_dogs_is_gibbs_with_the_optimised_scan() -> None:
    graph = ising(0.2, 0.1, (4, 4))
    inputs = (systematic_scan(), [5])
    found = min(
        (optimise_scan(tightest_influence(graph), scan, {5: 1.0}, 30) for scan in inputs), key=lambda scan: scan.bound
    )
    record = Record(trace=True, every=1)
    one = DoGS(n_sweeps=50, n_steps=30, targets=selected_variables(5), record=record).infer(graph, 7)
    other = herdner.Gibbs(50, scan=fixed_scan(found.order), record=record).infer(graph, 7)
    np.testing.assert_array_equal(one.samples, other.samples)
    assert one.certificate.bound == dobrushin_variation(tightest_influence(graph), found.order, {5: 1.0})
    assert one.certificate.systematic == dobrushin_variation(tightest_influence(graph), systematic_scan(), {5: 1.0}, 30)


def test_only_what_matters_is_updated() -> None:
    graph = ising(0.2, 0.1, (1, 30))
    start = np.zeros(30, np.int32)
    result = DoGS(n_sweeps=50, n_steps=12, targets=selected_variables(3), record=Record(every=1)).infer(
        graph, 7, start=start
    )
    changed = np.flatnonzero((result.samples != 0).any(axis=(0, 1)))
    assert 3 in changed
    assert changed.max() < 12


@pytest.mark.parametrize("coupling", [0.1, 2.0])
def test_vacuous_where_it_says_nothing(coupling: float) -> None:
    graph = ising(coupling, 0.0, (3, 3))
    plain = DoGS(n_sweeps=5, n_steps=40).infer(graph, 1).certificate
    assert plain.vacuous == (coupling > 1)
    assert ("no certificate" in str(plain)) == (coupling > 1)
    for backend in (DoGS(n_sweeps=5, annealing=linear_annealing(0.1, 2)), DoGS(n_sweeps=0)):
        certificate = backend.infer(graph, 1).certificate
        assert certificate.vacuous
        assert "no certificate" in str(certificate)
    assert len(plain.assumptions) == 2


def tagging_graph() -> FactorGraph:
    """Return a chain of tags with a forbidden transition and one link; only tokens 0 and 7 are uncertain."""
    unary = np.zeros((10, 3))
    unary[:, 0] = 8.0
    unary[[0, 7]] = [0.1, 0.0, 0.2]
    table = np.zeros((3, 3))
    table[0, 2] = -np.inf
    graph = chain_graph(unary, table)
    skip = TableFactors([[0, 7]], 0.5 * np.eye(3)[None])
    return FactorGraph(graph.domains, [*graph.factors, skip])


def test_uncertain_tokens_are_the_targets() -> None:
    backend = DoGS(n_sweeps=20, targets=uncertain_variables(0.05), record=Record(every=1))
    result = backend.infer(tagging_graph(), 4, start=np.zeros(10, np.int32))
    assert result.n_updates == 20 * 4 * 2
    assert result.certificate.trivial == 2
    assert result.certificate.vacuous  # forbidden transitions influence without limit
    moved = np.flatnonzero((result.samples != result.samples[:, :1]).any(axis=(0, 1)))
    assert {0, 7} <= set(moved)


def test_nothing_uncertain_is_nothing_to_do() -> None:
    graph = chain_graph(np.eye(4) * 50, np.zeros((4, 4)))
    start = np.arange(4)
    result = DoGS(targets=uncertain_variables(), annealing=linear_annealing(0.1, 4)).infer(graph, 1, start=start)
    assert result.n_updates == 0
    np.testing.assert_array_equal(result.state, start)
    assert result.certificate.bound == 0


def test_importance_may_be_an_array() -> None:
    graph, d = weak_graph(), np.array([0, 0.5, 0, 0, 2.0, 0])
    one = DoGS(n_sweeps=3, n_steps=9).infer(graph, 1, importance=d).certificate
    assert one == DoGS(n_sweeps=3, n_steps=9).infer(graph, 1, importance={4: 2.0, 1: 0.5}).certificate
    assert one.trivial == 2.5
    with pytest.raises(ValueError, match=r"`importance` must have shape \[6\]"):
        DoGS().infer(graph, 1, importance=[1.0])


def test_an_interrupted_run_keeps_its_certificate(monkeypatch) -> None:
    result = herdner.plain_gibbs(2).infer(weak_graph(), 1)

    def stopped(*_arguments: object, **_options: object) -> None:
        raise Interrupted(result)

    monkeypatch.setattr(herdner.Gibbs, "infer", stopped)
    with pytest.raises(Interrupted) as caught:
        DoGS().infer(weak_graph(), 1)
    assert caught.value.result.certificate.bound < 6


def test_options_are_text_too() -> None:
    backend = make_backend("dogs", targets="uncertain(0.1)", n_steps="12", annealing="linear(0.1, 4)")
    assert backend == DoGS(targets=uncertain_variables(0.1), n_steps=12, annealing=linear_annealing(0.1, 4))
    assert str(selected_variables(3, 4)) == "variables(3, 4)"
    for options, words in (
        ({"targets": "some"}, "targets must be all, variables"),
        ({"targets": "variables(-1)"}, "at least 0"),
        ({"targets": "uncertain(2)"}, "below 1"),
        ({"n_steps": 0}, "n_steps must be"),
        ({"steps_per_target": 0}, "steps_per_target must be"),
    ):
        with pytest.raises(ValueError, match=words):
            make_backend("dogs", **options)
    with pytest.raises(ValueError, match="no variable 9"):
        DoGS(targets=selected_variables(9)).infer(weak_graph(), 1)
    with pytest.raises(ValueError, match="at least one unobserved variable"):
        DoGS().infer(FactorGraph(np.empty(0, np.int32), []))


def test_evidence_makes_certificates_useful_at_every_arity() -> None:
    """An OR gate that is observed as 0 fixes its causes 0, 1 and 2, so a constraint on 2, 4 and 5 has no effect."""
    gate = np.where(np.arange(2) == (np.indices((2, 2, 2)).sum(axis=0) > 0)[..., None], 0.0, -np.inf)
    constraint = np.zeros((2, 2, 2))
    constraint[1, 1, 1] = -np.inf
    links = TableFactors([[4, 6], [5, 6]], 0.5 * np.eye(2)[None])
    groups = [TableFactors([[0, 1, 2, 3]], gate[None]), TableFactors([[2, 4, 5]], constraint[None]), links]
    graph = FactorGraph([2] * 7, groups).condition({3: 0})  # 5 becomes 4
    certificate = DoGS(targets=selected_variables(2), n_steps=1).infer(graph, 1).certificate
    assert certificate.bound == 0.0
    certificate = DoGS(targets=selected_variables(4), n_steps=1).infer(graph, 1).certificate
    assert certificate.bound == pytest.approx(np.tanh(0.25))
    assert optimise_scan(exact_influence(graph), [4], {4: 1.0}).bound >= 1


def test_a_target_has_a_certificate_beside_strongly_coupled_variables() -> None:
    links = TableFactors([[0, 1], [1, 2], [2, 0], [2, 3]], np.eye(2)[None], None, [5.0, 5.0, 5.0, 0.5])
    graph = FactorGraph([2] * 4, [links])
    certificate = DoGS(targets=selected_variables(3)).infer(graph, 1).certificate
    assert certificate.total_influence > 1
    assert certificate.bound == pytest.approx(np.tanh(0.25))
    assert "no certificate" in str(DoGS(targets=selected_variables(0)).infer(graph, 1).certificate)


@pytest.mark.parametrize("seed", range(40))
def test_influences_after_evidence_are_bounds_at_every_arity(seed) -> None:
    graph = wide_graph(seed)
    exact = influence_matrix(joint(graph))
    compiled = herdner.compile_tables(graph)
    bound, enumerated = (allowed_influence(compiled, n).to_scipy().toarray() for n in (0, 64))
    assert (exact <= enumerated + 1e-12).all()
    assert (enumerated <= bound + 1e-12).all()
    if all(np.isfinite(group.tables).all() for group in graph.factors):
        np.testing.assert_allclose(enumerated, exact, atol=1e-12)
