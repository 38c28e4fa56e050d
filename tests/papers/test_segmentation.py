"""Markov field aspect models: PLSA by EM, the field, errors of segmentations."""

from __future__ import annotations

import numpy as np
import pytest
from segmentation import aspect_field, fit_aspects, hamming_error, patch_centres, pixel_labels

from herdner.inference import make_backend


def world(rng, n_images: int = 40, shape=(6, 8)):
    """Images of two labels out of four, left and right; words of two vocabularies tell the labels apart a little."""
    beta = [rng.dirichlet(np.full(12, 0.3), 4), rng.dirichlet(np.full(5, 0.5), 4)]
    images, shown, truths = [], np.zeros((n_images, 4), bool), []
    for k in range(n_images):
        left, right = rng.choice(4, 2, replace=False)
        truth = np.full(shape, left)
        truth[:, rng.integers(2, 7) :] = right
        images.append(np.stack([[rng.choice(len(b[a]), p=b[a]) for a in truth.ravel()] for b in beta], axis=1))
        shown[k, np.unique(truth)] = True
        truths.append(truth)
    return images, shown, truths


def test_words_and_segmentations_are_learned_from_labels_of_images() -> None:
    images, shown, truths = world(np.random.default_rng(1))
    aspects = fit_aspects(images[:30], shown[:30], (12, 5), seed=2)
    assert (np.diff(aspects.log_likelihood) > -1.0).all()  # smoothing alone lets it fall a little
    assert aspects.log_likelihood[-1] > aspects.log_likelihood[0] + 50
    errors = {"patches alone": [], "field": []}
    for words, truth in zip(images[30:], truths[30:], strict=True):
        theta = aspects.mixture(words)
        alone = aspect_field(aspects, words, truth.shape, theta, 0.0)
        field = aspect_field(aspects, words, truth.shape, theta, 0.9)
        errors["patches alone"].append(hamming_error(make_backend("icm").infer(alone).state, truth.ravel()))
        marginals = make_backend("gibbs", n_sweeps=300).infer(field, 3).marginals
        errors["field"].append(hamming_error(marginals.argmax(axis=1), truth.ravel()))
    assert np.mean(errors["patches alone"]) < 0.45
    assert np.mean(errors["field"]) < 0.7 * np.mean(errors["patches alone"])


def test_without_smoothing_the_likelihood_never_falls() -> None:
    images, shown, _ = world(np.random.default_rng(4), 15)
    path = fit_aspects(images, shown, (12, 5), seed=1, smoothing=0.0, n_iterations=25).log_likelihood
    assert (np.diff(path) >= -1e-6).all()


def test_the_field_is_equation_4() -> None:
    images, shown, truths = world(np.random.default_rng(5), 12)
    aspects = fit_aspects(images, shown, (12, 5), seed=1)
    theta = np.array([0.1, 0.2, 0.3, 0.4])
    graph = aspect_field(aspects, images[0], (6, 8), theta, 0.48)
    x, y = truths[0], np.roll(truths[0], 1, axis=1)

    def by_hand(z):
        agree = (z[1:] == z[:-1]).sum() + (z[:, 1:] == z[:, :-1]).sum()
        words = images[0]
        each = [
            np.log(theta[a] * aspects.beta[0][a, words[i, 0]] * aspects.beta[1][a, words[i, 1]])
            for i, a in enumerate(z.ravel())
        ]
        return 0.48 * agree + sum(each)

    difference = graph.log_potential(x.ravel()) - graph.log_potential(y.ravel())
    assert difference == pytest.approx(by_hand(x) - by_hand(y))


def test_patches_and_pixels() -> None:
    rows, columns = patch_centres(213, 320)
    assert (len(rows), len(columns)) == (20, 31)  # the 620 variables of DoGS17
    labels = np.arange(620).reshape(20, 31)
    whole = pixel_labels(labels, rows, columns, 213, 320)
    assert whole.shape == (213, 320)
    np.testing.assert_array_equal(whole[np.ix_(rows, columns)], labels)
    assert hamming_error([1, 2, 3, 4], [1, 2, 4, -1]) == pytest.approx(1 / 3)
