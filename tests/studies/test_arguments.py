"""Arguments out of the range of a theorem or a sampler raise an error of one line (bounds, FWSS, denoising)."""

from __future__ import annotations

import numpy as np
import pytest

from herdner import FactorGraph, TableFactors, boltzmann_machine
from herdner.dobrushin import (
    Influence,
    InfluenceEstimate,
    block_influence,
    coupling_bounds,
    dobrushin_variation,
    exact_influence,
    marginal_bounds,
    optimise_blocks,
    optimise_scan,
    tightest_influence,
)
from herdner.studies import herding
from herdner.studies.convergence import (
    Convergence,
    CorrelationEstimate,
    ErrorParts,
    Focus,
    Lambdas,
    approx_bound,
    best_bins,
    choose_bins,
    choose_error_bound,
    focus_variable,
    herding_bound,
)
from herdner.studies.denoising import (
    FlipNoise,
    GaussianNoise,
    default_backend,
    denoise,
    estimate_flip_noise,
    estimate_gaussian_noise,
    posterior_graph,
    pseudo_likelihood_coupling,
)
from herdner.studies.fwss import (
    Adam,
    LogisticRegression,
    MarginalPolytope,
    MixtureMean,
    NeuralRegression,
    SampleMean,
    SteinField,
    density_target,
    effective_sample_size,
    eleven_gaussians,
    fit_laplace,
    ksd,
    ksd_bandwidth,
    mmd2,
    quadrature_variance,
    quadrature_weights,
    sgld,
    stein_kernel,
    stein_weights,
)

NAN = np.nan
PAIR = boltzmann_machine([[0, 0.3], [0.3, 0]], [0.1, 0.2])
POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
SCORES = -POINTS
POLYTOPE = MarginalPolytope(1.0, 0.5)
FOCUS: Focus = focus_variable(PAIR)
BLOCKS = block_influence(FactorGraph([2, 2, 2], [TableFactors([[0, 1], [0, 2]], np.eye(2)[None])]))
PICTURE = np.zeros((3, 3))


def _choices(function, name: str, message: str, *values):
    return [(lambda value=value: function(**{name: value}), message) for value in values]


CASES = [
    *_choices(lambda accuracy: POLYTOPE.bound(5, accuracy=accuracy), "accuracy", "`accuracy` must be", 1.5, -1, 0, NAN),
    *_choices(lambda n: POLYTOPE.bound(n), "n", "n_particles must be a whole number", 0, -3, 2.5, NAN),
    *_choices(lambda gamma: POLYTOPE.contraction(5, gamma), "gamma", "`gamma` must be", 0, -1, NAN),
    *_choices(lambda phi: POLYTOPE.lazy_bound(5, phi), "phi", "`phi` must be a finite number of at least 0", -1, NAN),
    *_choices(lambda accuracy: POLYTOPE.lazy_bound(5, 0.1, accuracy), "accuracy", "of at least 1", 0.5, NAN, np.inf),
    *_choices(lambda d: MarginalPolytope(d, 0.5), "d", "`diameter` must be a finite number of at least 0", -1, NAN),
    *_choices(lambda h: MarginalPolytope.of(POINTS, np.full(3, 1 / 3), h), "h", "`bandwidth` must be", 0, -1, NAN),
    *_choices(lambda h: ksd(POINTS, SCORES, h), "h", "`bandwidth` must be", 0, -1, NAN, 1e-200),
    *_choices(lambda h: stein_kernel(POINTS, SCORES, POINTS, SCORES, h), "h", "`bandwidth` must be", 0, NAN),
    *_choices(lambda h: stein_weights(POINTS, SCORES, h), "h", "`bandwidth` must be", 0, NAN),
    *_choices(lambda h: SteinField(POINTS, np.ones(3), SCORES, h), "h", "`bandwidth` must be", 0, -2, NAN),
    *_choices(lambda h: mmd2(POINTS, POINTS, h), "h", "`bandwidth` must be", 0, NAN),
    *_choices(lambda h: SampleMean(POINTS).at(POINTS, h), "h", "`bandwidth` must be", 0, NAN),
    *_choices(lambda h: MixtureMean([1], [[0]], [[[1]]]).at(POINTS[:, :1], h), "h", "`bandwidth` must be", 0, NAN),
    *_choices(lambda h: quadrature_weights(POINTS, POINTS, h), "h", "`bandwidth` must be", 0, NAN),
    *_choices(lambda h: quadrature_variance(POINTS, POINTS, h), "h", "`bandwidth` must be", 0, NAN),
    (lambda: ksd(POINTS, SCORES * NAN, 1.0), "`scores` must be finite"),
    (lambda: ksd(POINTS, SCORES, 1.0, [NAN, 1, 1]), "`weights` must hold finite numbers"),
    (lambda: ksd_bandwidth(POINTS, SCORES * NAN), "`scores` must be finite"),
    (lambda: ksd_bandwidth(POINTS, SCORES, rate=NAN), "`rate` must be a finite number"),
    (lambda: stein_kernel(POINTS, SCORES + np.inf, POINTS, SCORES, 1.0), "`scores` must be finite"),
    (lambda: stein_weights(POINTS, SCORES * NAN, 1.0), "`scores` must be finite"),
    (lambda: SteinField(POINTS, np.ones(3), SCORES * NAN, 1.0), "`scores` must be finite"),
    (lambda: SampleMean(POINTS, [NAN, 1, 1]), "`weights` must hold finite numbers"),
    (lambda: MixtureMean([1, 1], [[0]], [[[1]]]), "must have shapes"),
    (lambda: effective_sample_size([NAN, 1]), "`weights` must hold finite numbers"),
    (lambda: Adam(beta1=1.0), "`beta1` must be at least 0 and below 1"),
    (lambda: Adam(beta2=NAN), "`beta2` must be at least 0 and below 1"),
    (lambda: Adam(epsilon=0), "`epsilon` must be above 0"),
    (lambda: sgld(eleven_gaussians(), 3, decay=np.inf), "`decay` must be at least 0"),
    (lambda: fit_laplace(eleven_gaussians(), [0.0, 0.0], step=0.0), "`step` must be above 0"),
    (lambda: density_target(lambda x: x[:, 0], dim=0), "dim must be a whole number of at least 1"),
    (lambda: LogisticRegression(POINTS, [0, 1, 0], shape=0), "`shape` of a gamma distribution"),
    (lambda: NeuralRegression(POINTS, [0, 1, 0], rate=NAN), "`rate` of a gamma distribution"),
    *_choices(lambda n: herding_bound(n, 2), "n", "`n_sweeps` must", 0, -1, NAN),
    *_choices(lambda n: herding_bound(10, n), "n", "n_weights must be a whole number", 0, -1, NAN),
    *_choices(lambda c: herding_bound(10, 2, c), "c", "`error_bound` must be a finite number of at least 0", -1, NAN),
    *_choices(
        lambda w: herding_bound(10, 2, width=w), "w", "`width` must be a finite number from 0 to 1", -0.1, 2, NAN
    ),
    *_choices(approx_bound, "n_bins", "n_bins must be a whole number of at least 1", 0, -1, NAN),
    *_choices(best_bins, "n_sweeps", "`n_sweeps` must be a finite number", 0, NAN, np.inf),
    (lambda: choose_bins(10, most=0), "most must be a whole number of at least 1"),
    *_choices(lambda t: choose_error_bound(PAIR, 8, [0.0, t]), "t", "`candidates` must be increasing", -1, NAN),
    *_choices(lambda n: Convergence.of(PAIR).burn_in(n), "n", "`n_sweeps` must be a finite number", 0, NAN),
    (lambda: ErrorParts.of(np.zeros((1, 2, 2)), FOCUS), "at least one sample and no negative count"),
    (lambda: ErrorParts.of(-np.ones((1, 2, 2)), FOCUS), "at least one sample and no negative count"),
    (lambda: ErrorParts.of(np.ones((1, 3, 2)), FOCUS), "`visits` must have shape"),
    (lambda: ErrorParts.of(np.full((1, 2, 2), NAN), FOCUS), "`visits` must hold finite numbers"),
    (lambda: Lambdas.of(np.full((2, 2), NAN), FOCUS), "`f` must hold finite numbers"),
    (lambda: Lambdas.of(np.ones(3), FOCUS), "`f` must have shape"),
    (lambda: CorrelationEstimate.of_returns(np.full((2, 2), -1), FOCUS), "`returns` must be counts"),
    (lambda: herding.herd([[1.0]], [1.0], 2.5), "n_samples must be a whole number"),
    (lambda: exact_influence(PAIR, 0), "max_states must be a whole number of at least 1"),
    (lambda: tightest_influence(PAIR, -1), "exact_states must be a whole number of at least 0"),
    (lambda: optimise_scan(tightest_influence(PAIR), epsilon=NAN), "`epsilon` must be at least 0"),
    (lambda: optimise_blocks(BLOCKS, [0], np.full(len(BLOCKS.spans), NAN)), "`importance` must be finite"),
    (lambda: marginal_bounds(PAIR).errors(np.full((2, 2), NAN)), "`marginals` must hold finite numbers"),
    (lambda: marginal_bounds(PAIR).errors(np.ones(2)), "`marginals` must have shape"),
    (lambda: InfluenceEstimate.of(PAIR, [[0.5, 0.0]]), "`samples` must be states"),
    (lambda: posterior_graph(PICTURE, GaussianNoise(1.0), NAN), "`coupling` must be a finite number"),
    (lambda: denoise(PICTURE, GaussianNoise(1.0), 0.3, estimate="median"), "`estimate` must be 'mean' or 'map'"),
    (lambda: default_backend("median"), "`estimate` must be 'mean' or 'map'"),
    (lambda: FlipNoise(0.1, 2.5), "n_labels must be a whole number from 2"),
    (lambda: estimate_gaussian_noise(PICTURE * NAN, 2, None), "a picture must hold finite numbers"),
    (lambda: estimate_gaussian_noise(PICTURE, 0, None), "n_labels must be a whole number of at least 2"),
    (lambda: estimate_flip_noise(PICTURE.astype(int), 1), "n_labels must be a whole number of at least 2"),
    (lambda: pseudo_likelihood_coupling(PICTURE, 2), "`labels` must be integers from 0 to 1"),
    (lambda: pseudo_likelihood_coupling(PICTURE.astype(int), 2, NAN), "`most` must be a finite number"),
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_arguments_out_of_range_are_refused_by_one_line(call, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_influences_that_overflow_give_no_nan() -> None:
    """Two influences of 1e308 exceed the range of doubles; an infinite bound times 0 would be NaN."""
    influence = Influence.of_matrix([[0.0, 1e308], [1e308, 0.0]])
    order = [0, 1, 0, 1]
    assert coupling_bounds(influence, order).tolist() == [1.0, 1.0]
    assert dobrushin_variation(influence, order, [0.0, 1.0]) >= 1
