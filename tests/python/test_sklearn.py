"""scikit-learn's manners: its own checks, clone, Pipeline, GridSearchCV."""

import numpy as np
import pytest
from conftest import SMALL, stripes

pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import hone  # noqa: E402

TINY = dict(latent=2, encoder_hidden=(4,), iterations=5, steps=2, threads=1, progress=False)


EXCLUDED = {  # check → why
    "check_methods_sample_order_invariance":
        "score_samples is a Monte Carlo estimate: a datum's random numbers belong to its place",
    "check_methods_subset_invariance": "the same, and chains of 50 data share a step size, as in hone eval",
}


@parametrize_with_checks([hone.MatrixFactorization(likelihood="gaussian", **TINY),
                          hone.VAE(hidden=(4,), likelihood="gaussian", **TINY)],
                         expected_failed_checks=lambda estimator: EXCLUDED)
def test_the_checks_of_scikit_learn(estimator, check):
    """With Gaussian likelihoods. Others take only bits or counts, which these checks do not offer."""
    check(estimator)


def test_clone_and_parameters():
    model = hone.VAE(latent=3, hidden=(5,), objective="kl")
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(latent=4).latent == 4
    with pytest.raises(ValueError, match="Invalid parameter 'layers'"):
        model.set_params(layers=3)
    assert "latent=4" in repr(model)


def test_pipeline_and_grid_search():
    X, y = stripes(200, 1), np.repeat([0, 1], 100)
    pipeline = make_pipeline(hone.VAE(hidden=(8,), iterations=20, **SMALL), LogisticRegression())
    assert pipeline.fit(X, y).predict(X).shape == (200,)
    search = GridSearchCV(hone.VAE(hidden=(8,), iterations=20, **SMALL), {"latent": [1, 2]}, cv=2).fit(X)
    assert search.best_params_["latent"] in (1, 2) and np.isfinite(search.best_score_)
    names = search.best_estimator_.get_feature_names_out()
    assert list(names) == [f"vae{k}" for k in range(search.best_params_["latent"])]
