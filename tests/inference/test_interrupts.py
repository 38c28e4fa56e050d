"""Ctrl-C in the backends that sweep keeps the result so far."""

from __future__ import annotations

import numpy as np
import pytest

from herdner._ext import ascent
from herdner.graph import ising
from herdner.inference import Interrupted, factor_messages, make_backend
from herdner.inference.backends import annealed_importance, icm, max_product, mean_field
from herdner.inference.record import Record
from herdner.inference.tempering import TemperedRun


def impatient(cls, method, patience):
    """Return a subclass whose ``method`` is interrupted after so many calls."""

    class Impatient(cls):
        calls = 0

    def interrupted(self, *arguments):
        Impatient.calls += 1
        if Impatient.calls > patience:
            raise KeyboardInterrupt
        return getattr(cls, method)(self, *arguments)

    setattr(Impatient, method, interrupted)
    return Impatient


PLACES = {
    "mean-field": (mean_field.loops, "MeanFieldLoop", "sweep"),
    "max-product": (max_product.loops, "MaxProductLoop", "sweep"),
    "icm": (icm, "Ascent", "climb"),
}


@pytest.mark.parametrize("patience", [0, 2])
@pytest.mark.parametrize("name", PLACES)
def test_the_result_so_far_is_in_the_exception(monkeypatch, name, patience):
    graph = ising(1.0, np.random.default_rng(0).normal(size=(12, 12)) * 0.3)
    place, attribute, method = PLACES[name]
    whole = make_backend(name).infer(graph)
    assert whole.trace.shape[1] > 2
    cls = ascent.Ascent if name == "icm" else getattr(place, attribute)
    monkeypatch.setattr(place, attribute, impatient(cls, method, patience))
    with pytest.raises(Interrupted) as caught:
        make_backend(name).infer(graph)
    result = caught.value.result
    np.testing.assert_allclose(result.trace, whole.trace[:, :patience], rtol=1e-12)
    assert result.n_updates == 144 * patience
    assert result.log_potential == graph.log_potential(result.state)


def test_later_starts_do_not_hide_the_best_state(monkeypatch):
    graph = ising(1.0, np.random.default_rng(0).normal(size=(12, 12)) * 0.3)
    first = make_backend("icm").infer(graph)
    monkeypatch.setattr(icm, "Ascent", impatient(ascent.Ascent, "climb", first.trace.shape[1]))
    with pytest.raises(Interrupted) as caught:
        make_backend("icm", n_starts=3).infer(graph, seed=0)
    assert caught.value.result.trace.shape[0] == 2
    assert caught.value.result.log_potential >= first.log_potential


def interrupt_advance(monkeypatch, patience, *, only_recorded=False):
    """Raise ``KeyboardInterrupt`` once, after ``patience`` calls of `TemperedRun.advance`."""
    calls, advance = [0], TemperedRun.advance

    def interrupted(self, *arguments, **options):
        calls[0] += options.get("record", False) or not only_recorded
        if calls[0] == patience + 1:
            calls[0] += 1
            raise KeyboardInterrupt
        return advance(self, *arguments, **options)

    monkeypatch.setattr(TemperedRun, "advance", interrupted)


GRID = ising(0.4, np.random.default_rng(0).normal(size=(5, 5)) * 0.3)


@pytest.mark.parametrize("only_recorded", [False, True])
def test_tempered_keeps_its_records_and_samples(monkeypatch, only_recorded):
    interrupt_advance(monkeypatch, 2, only_recorded=only_recorded)
    with pytest.raises(Interrupted) as caught:
        make_backend("tempered", n_rounds=400, n_samples=20, width=8).infer(GRID, 0)
    result = caught.value.result
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1)
    assert result.samples.shape == (2, 2 if only_recorded else 1, 25)
    assert result.n_updates == (80 if only_recorded else 1) * 2 * 8 * 25
    assert result.log_potential == pytest.approx(GRID.log_potential(result.state))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [None, 60.0])
@pytest.mark.parametrize("patience", [1, 2, 20])
def test_annealed_importance_estimates_log_z_from_few_runs(monkeypatch, seconds, patience):
    interrupt_advance(monkeypatch, patience)
    with pytest.raises(Interrupted) as caught:
        make_backend("annealed-importance", seconds=seconds, n_rounds=40).infer(GRID, 0)
    result = caught.value.result
    assert result.log_z == pytest.approx(make_backend("exact").infer(GRID).log_z, abs=3)
    assert result.log_z_interval[0] <= result.log_z <= result.log_z_interval[1]


def test_annealed_importance_keeps_completed_runs(monkeypatch):
    class Pool(annealed_importance.ThreadPoolExecutor):
        calls = 0

        def submit(self, function, *arguments):
            future = super().submit(function, *arguments)
            if Pool.calls == 0:
                result = future.result

                def interrupted():
                    del future.result
                    raise KeyboardInterrupt

                future.result = interrupted
                assert result
            Pool.calls += 1
            return future

    monkeypatch.setattr(annealed_importance, "ThreadPoolExecutor", Pool)
    with pytest.raises(Interrupted) as caught:
        make_backend("annealed-importance", n_rounds=40).infer(GRID, 0)
    assert np.isfinite(caught.value.result.log_z)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("record", "n_samples"),
    [
        (None, 0),
        (Record(best=True, marginals=False), 0),
        (Record(best=False, marginals=False), 0),
        (Record(best=False), 3),
    ],
)
def test_auto_combines_the_results_so_far(monkeypatch, record, n_samples):
    interrupt_advance(monkeypatch, 1)
    backend = make_backend("auto", seconds=5.0, max_log2_cells=0, n_samples=n_samples)
    with pytest.raises(Interrupted) as caught:
        backend.infer(GRID, 0, record=record)
    result = caught.value.result
    assert result.method == "interrupted"
    assert result.marginals.shape == (25, 2)
    assert np.isfinite(result.log_z)
    assert result.log_potential == pytest.approx(GRID.log_potential(result.state))
    assert (result.samples is not None) == bool(n_samples)


def test_auto_without_any_result_is_interrupted(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(factor_messages.FactorLayout, "of", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        make_backend("auto", max_log2_cells=0).infer(GRID, 0)
    assert caught.type is KeyboardInterrupt
