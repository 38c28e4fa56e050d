"""Ctrl-C in the backends that sweep keeps the result so far."""

from __future__ import annotations

import numpy as np
import pytest

from herdner._ext import ascent
from herdner.graph import ising
from herdner.inference import Interrupted, make_backend
from herdner.inference.backends import icm, max_product, mean_field


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
    "mean-field": (mean_field.loops, "MeanField", "sweep"),
    "max-product": (max_product.loops, "MaxProduct", "sweep"),
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
