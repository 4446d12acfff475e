"""VAE and MatrixFactorization, in scikit-learn's manners."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _hone
from ._data import bits_of, count_of, data_of, flat, own_file, text_of, write_npy
from ._density import array_of
from ._progress import Work

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.6 or later is optional: these do what the estimators themselves need
    from ._standalone import (BaseEstimator, ClassNamePrefixFeaturesOutMixin, NotFittedError, TransformerMixin,
                              validate_data)

DTYPES = [np.float64, np.float32, np.uint8, np.bool_, np.int64, np.int32, np.int16, np.int8, np.uint16, np.uint32]
FILES = ("config.toml", "metrics.csv", "clock.csv", "test_log_likelihood.csv", "summary.json", "checkpoint.safetensors")
TABLES = {"checkpoint_every": "checkpoint.every", "checkpoint_minutes": "checkpoint.minutes",
          "test_every": "test.every", "test_points": "test.points", "test_samples": "test.samples",
          "alpha_from": "schedule.alpha_from", "alpha_until": "schedule.alpha_until", "warmup": "schedule.warmup"}
OURS = {"folder", "warm_start", "progress", "likelihood"}  # parameters that are no settings of `hone train`
IN_MEMORY = "<memory>"
MODELS, LIKELIHOODS = (
    next(row["takes"] for row in _hone.train_settings() if row["key"] == key).removeprefix("one of ").split(", ")
    for key in ("model", "likelihood"))
LIKELIHOODS.remove("auto")
ESTIMATES = ("mixture", "best", "pilot")  # of `hone eval`


def _keep(model: Any, given: dict[str, Any]) -> None:
    """Sets the parameters of a constructor; scikit-learn wants them spelled out there."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(model, name, value)


class _LatentModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What both kinds of model share. A parameter that is None has the default of `hone train`."""

    def _kind(self, stored: str | None = None) -> dict[str, str]:
        """The settings `model` and `likelihood`; `stored`: the model of the run that goes on."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, X_test: Any = None) -> Any:
        """Trains on X (n, features). A matrix as second argument, or X_test, is test data; a 1-D y is ignored.

        Ctrl-C ends the training with a checkpoint. With warm_start=True, fit continues the training of before.
        """
        if getattr(self, "_convolutional", False):
            raise _hone.InputError("this model has convolutions, which fit does not train: continue it with 'hone train --resume'")
        before = dict(vars(self))
        try:
            return self._fit(X, y, X_test)
        except BaseException:  # the estimator stays what it was, fitted or not
            vars(self).clear()
            vars(self).update(before)
            raise

    def _fit(self, X: Any, y: Any, X_test: Any) -> Any:
        files = [own_file(X), None]
        X = self._checked(X, reset=True)
        X_test = self._test_data(X.shape[1], y, X_test)
        files[1] = own_file(X_test)
        test = None if X_test is None else self._checked(X_test, reset=False)
        resume = bool(self.warm_start) and (self._folder_has_run() or "_files" in vars(self))
        with tempfile.TemporaryDirectory(prefix="hone-") as temporary:
            folder = Path(self.folder) if self.folder is not None else Path(temporary) / "run"
            if resume and self.folder is None:
                self._write_files(folder, self._files)
            place = folder if self.folder is not None else None
            named = {"data": files[0] or self._place(place, "data.npy"), "test.data": "own"}
            if test is not None:
                named["test.data"] = files[1] or self._place(place, "test.npy")
            settings = self._settings(X.shape[0], named, place, resume)
            data, test_data = data_of(X), None if test is None else data_of(test)
            total = dict(settings).get("iterations", "")
            with Work("train", int(total) if total.isdigit() else 400_000, self.progress) as work:
                _hone.train(settings, str(folder), resume, data, test_data, work.stop, work.tell, work.say)
            self._take(folder)
        self._X, self._X_test = X, test
        self.threshold_ = self._model().threshold
        if self.folder is not None:
            self._write_data(Path(self.folder), dict(settings))
        return self

    @staticmethod
    def _test_data(features: int, y: Any, X_test: Any) -> Any:
        """X_test, or a second argument that is a matrix."""
        def shape(given: Any) -> tuple[int, ...]:
            return given.shape if hasattr(given, "shape") else np.shape(given) if isinstance(given, (list, tuple)) else ()

        if len(shape(y)) == 2:
            if X_test is not None:
                raise ValueError("X_test is given twice, as y too; pass targets as a 1-D y")
            X_test = y
        found = shape(X_test)
        if len(found) == 2 and found[1] != features:
            raise ValueError(f"X_test has {found[1]} features, X has {features}; pass targets as a 1-D y")
        return X_test

    def _folder_has_run(self) -> bool:
        return self.folder is not None and (Path(self.folder) / "config.toml").exists()

    def _settings(self, size: int, named: dict[str, str], folder: Path | None, resume: bool) -> list[tuple[str, str]]:
        given = {TABLES.get(key, key): value for key, value in self.get_params(deep=False).items()
                 if key not in OURS and value is not None}
        if resume:  # data are known by their checksum; the name stays
            text = (folder / "config.toml").read_text() if folder else self._files["config.toml"].decode()
            stored = tomllib.loads(text)
            named = {"data": stored["data"], "test.data": stored.get("test", {}).get("data", "own")}
        settings = {**self._kind(stored.get("model") if resume else None), **named, **given}
        settings.setdefault("batch", min(100, size))
        return [(key, self._text(key, value)) for key, value in settings.items()]

    @staticmethod
    def _text(key: str, value: Any) -> str:
        try:
            return text_of(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{key}: {error}") from error

    @staticmethod
    def _place(folder: Path | None, name: str) -> str:
        return IN_MEMORY if folder is None else str(folder.resolve() / name)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if not reset:
            self._fitted()
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        if kind in ("m", "M"):
            raise TypeError(f"X: expected numbers, found dtype {X.dtype}")
        finite = "allow-nan" if self.missing == "ignore" else True
        try:
            return validate_data(self, X, accept_sparse="csr", dtype=DTYPES, order="C", reset=reset, ensure_min_samples=1,
                                 ensure_all_finite=finite)
        except ValueError as error:
            if "X contains NaN" in str(error):
                raise ValueError("Input X contains NaN; missing=\"ignore\" leaves missing values out of the likelihood") from error
            if "X" in str(error):
                raise
            raise type(error)(f"X: {error}") from error

    def _fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")

    def _take(self, folder: Path) -> None:
        """Keeps what the run folder holds."""
        self._files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
        self.__dict__.pop("_networks", None)
        self.summary_ = json.loads(self._files["summary.json"])
        self.n_iter_ = self.summary_["iterations"]
        self.finished_ = self.summary_["finished"]
        self._n_features_out = self.summary_["latent"]

    def _model(self) -> _hone.TrainedNetworks:
        self._fitted()
        networks = self.__dict__.get("_networks")
        if networks is None:
            threads = self.threads or os.cpu_count() or 1
            networks = self._networks = _hone.TrainedNetworks(
                self._files["config.toml"].decode(), self._files["checkpoint.safetensors"], threads)
        return networks

    def _data(self, X: Any) -> _hone.Data:
        """Data as the model was trained on them: binarized by the threshold that was found in fit."""
        data = data_of(bits_of(self._checked(X, reset=False), self.threshold_))
        if not data.binary and "at random" in self.summary_["binarization"]:
            raise ValueError("X: give bits: the training data were binarized at random")
        return data

    def transform(self, X: Any, *, refine: int = 0, sd: bool = False, draws: int = 16, seed: int = 1) -> Any:
        """Means of q(z | x). refine=t: one draw of q per datum instead, refined by t steps.

        sd=True returns (means, standard deviations): q's own, or those of `draws` refined draws.
        """
        model = self._model()
        steps = count_of(refine, "refine", 0)
        draws, seed = count_of(draws, "draws", 2), count_of(seed, "seed", 0)
        data = self._data(X)
        if steps == 0:
            mean, deviation = model.encode(data)
            return (mean, deviation) if sd else mean
        with Work("refine", data.rows * (draws if sd else 1), self.progress) as work:
            if not sd:
                return model.refine(data, steps, seed, work.stop, work.tell)[0]
            made = np.stack([model.refine(data, steps, _hone.draw_seed(seed, k), work.stop, work.tell)[0]
                             for k in range(draws)])
        return made.mean(axis=0), made.std(axis=0, ddof=1)

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """E[x | z] of points (n, latent)."""
        return self._model().decode(self._latents(Z))

    def decision_logits(self, Z: Any) -> np.ndarray:
        """The decoder's outputs at points (n, latent): logits, where x is binary."""
        return self._model().outputs(self._latents(Z))

    def _latents(self, Z: Any) -> np.ndarray:
        self._fitted()
        Z = array_of(Z, "Z")
        if Z.ndim != 2 or Z.shape[1] != self._n_features_out:
            raise ValueError(f"Z: expected shape (n, {self._n_features_out}), found {Z.shape}")
        if not np.isfinite(Z).all():
            raise ValueError("Z: contains a number that is not finite")
        return Z

    def sample(self, n: int = 1, seed: int = 1) -> np.ndarray:
        """n data drawn from the model, (n, features)."""
        return self._model().simulate(count_of(n, "n"), count_of(seed, "seed", 0))

    def score_samples(self, X: Any, method: str = "importance", *, samples: int = 20_000, steps: int | None = None,
                      chains: int | None = None, estimate: str = "mixture") -> np.ndarray:
        """log p(x) of each datum, as `hone eval` estimates it.

        method: "importance" (samples; estimate "mixture", "best", "pilot", or "exact" where it is known), or "ais"
        (steps, chains).
        """
        model = self._model()
        if method not in ("importance", "ais"):
            raise ValueError(f"method: '{method}' is not known; expected importance or ais")
        exact = isinstance(self, MatrixFactorization) and self.likelihood == "gaussian"  # of this model it is known
        known = [*ESTIMATES, *(["exact"] if exact else [])]
        if estimate not in known:
            raise ValueError(f"estimate: '{estimate}' is not known here; expected one of {', '.join(known)}")
        samples, steps, chains = (0 if value is None else count_of(value, name) for name, value in
                                  (("samples", samples), ("steps", steps), ("chains", chains)))
        data = self._data(X)
        with Work("evaluate", data.rows, self.progress) as work:
            if method == "ais":
                return model.anneal(data, steps, chains, work.stop, work.tell)["ais"]
            return model.evaluate(data, samples, work.stop, work.tell)[estimate]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log p(x), from few importance samples: for comparing models, as GridSearchCV does."""
        return float(self.score_samples(X, samples=500).mean())

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """The columns of metrics.csv."""
        self._fitted()
        rows = list(csv.DictReader(io.StringIO(self._files["metrics.csv"].decode())))
        columns = rows[0] if rows else {}
        return {key: np.array([float(row[key]) if row[key] else np.nan for row in rows]) for key in columns}

    @property
    def parameters_(self) -> dict[str, np.ndarray]:
        """Weights and biases of the decoder and of q's two networks; weights have one row per input unit."""
        return self._model().parameters()

    def state_dict(self) -> dict[str, Any]:
        """The same for PyTorch: decoder.0.weight (outputs, inputs), decoder.0.bias, decoder.2.weight, mean.0.weight, …"""
        try:
            import torch
        except ImportError as error:
            raise ImportError("state_dict needs torch, which is not installed: pip install torch") from error
        return {name: torch.from_numpy(value) for name, value in self._model().torch_arrays().items()}

    def torch_module(self, network: str = "decoder") -> Any:
        """A torch.nn.Sequential with the weights of "decoder" (z → logits), "mean" or "sd"."""
        from torch import nn

        own = network + "."
        state = {key.removeprefix(own): value for key, value in self.state_dict().items() if key.startswith(own)}
        if not state:
            raise ValueError(f"network: '{network}' is not known; expected decoder, mean or sd")
        name = tomllib.loads(self._files["config.toml"].decode())["activation"]
        activation = {"relu": nn.ReLU, "tanh": nn.Tanh, "softplus": nn.Softplus}[name]
        layers: list[Any] = []
        weights = [value for key, value in state.items() if key.endswith("weight")]
        if any(weight.ndim != 2 for weight in weights):
            raise ValueError("this network has convolutions: 'hone export RUN --format torch' makes a module of it")
        for index, weight in enumerate(weights):
            linear = nn.Linear(weight.shape[1], weight.shape[0], bias=f"{2 * index}.bias" in state, dtype=weight.dtype)
            layers += [linear, activation()] if index + 1 < len(weights) else [linear]
        module = nn.Sequential(*layers)
        module.load_state_dict(state)
        return module

    @staticmethod
    def _write_files(folder: Path, files: dict[str, bytes]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def _write_data(self, folder: Path, named: dict[str, str]) -> None:
        for key, name, X in (("data", "data.npy", self._X), ("test.data", "test.npy", self._X_test)):
            path = folder.resolve() / name
            if X is not None and named.get(key) == str(path) and not path.exists():
                write_npy(path, X)

    def save(self, folder: str | Path) -> Path:
        """Writes a run folder: `hone train --resume`, `hone eval`, `hone report` and hone.load take it.

        The training data are written too, unless they are a .npy file of their own, so that the run can be continued.
        A pickle holds no data: then config.toml says data = "<memory>", and only fit(X) with the data continues the run.
        """
        self._fitted()
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(f"folder: {folder} is not empty")
        settings = flat(tomllib.loads(self._files["config.toml"].decode()))
        checkpoint = self._files["checkpoint.safetensors"]
        moved = {key: str(folder.resolve() / name) for key, name in (("data", "data.npy"), ("test.data", "test.npy"))
                 if settings.get(key) == IN_MEMORY and self._X is not None}
        if moved:
            settings.update(moved)
            checkpoint = _hone.with_identity(checkpoint, "data", settings["data"])
        config = _hone.resolved_config([(key, text_of(value)) for key, value in settings.items()])
        self._write_files(folder, {**self._files, "config.toml": config.encode(), "checkpoint.safetensors": checkpoint})
        self._write_data(folder, settings)
        return folder

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__()) if hasattr(super(), "__getstate__") else dict(vars(self))
        for key in ("_networks",):
            state.pop(key, None)
        if "_files" in state:  # data do not travel with a pickle
            state["_X"] = state["_X_test"] = None
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class VAE(_LatentModel):
    """A variational autoencoder: x | z by a network, z standard normal, q(z | x) by networks.

    likelihood: "bernoulli" (bits), "gaussian" (variance 0.01), "gaussian-learned", "categorical" (one-hot groups of
    `categories` neighbours), "poisson" or "negative-binomial" (counts); None: bernoulli.
    A parameter that is None has the default of `hone train` (docs/keys.md); batch is at most the number of data.
    folder: a run folder to train in; None: in memory. warm_start: fit continues the training of before. progress: True,
    False, or None for a bar in terminals and notebooks.
    """

    def __init__(self, latent: int | None = None, hidden: Sequence[int] | None = None, *,
                 likelihood: str | None = None, categories: int | None = None, missing: str | None = None,
                 encoder_hidden: Sequence[int] | None = None, activation: str | None = None,
                 init: str | None = None, score_bound: float | None = None, alpha_from: int | None = None,
                 alpha_until: int | None = None, warmup: int | None = None,
                 objective: str | None = None, alpha: float | None = None, estimator: str | None = None,
                 first_term: str | None = None, entropy: str | None = None, baseline: str | None = None,
                 baseline_decay: float | None = None, local_from: int | None = None, kernel: str | None = None,
                 steps: int | None = None, leapfrog: int | None = None, leapfrog_jitter: int | None = None,
                 adapt: str | None = None, step_size: float | None = None, acceptance: float | None = None,
                 batch: int | None = None, iterations: int | None = None, optimizer: str | None = None,
                 rate_mean: float | None = None, rate_scale: float | None = None, rate_model: float | None = None,
                 rate_decay: float | None = None, decay_every: int | None = None, precision: str | None = None,
                 seed: int | None = None, binarization: str | None = None, data_seed: int | None = None,
                 report_every: int | None = None, checkpoint_every: int | None = None,
                 checkpoint_minutes: float | None = None, test_every: int | None = None,
                 test_points: int | None = None, test_samples: int | None = None, engine: str | None = None,
                 threads: int | None = None, folder: str | Path | None = None, warm_start: bool = False,
                 progress: bool | None = None) -> None:
        _keep(self, locals())

    def _kind(self, stored: str | None = None) -> dict[str, str]:
        return {"model": "vae", **({} if self.likelihood is None else {"likelihood": self.likelihood})}


class MatrixFactorization(_LatentModel):
    """x | z by a linear map of z; the likelihoods are those of VAE, and "logistic" is another name of "bernoulli".

    The other parameters are those of VAE, but for `hidden`, which matrix factorization does not have.
    """

    def __init__(self, latent: int | None = None, likelihood: str = "logistic", *, categories: int | None = None,
                 missing: str | None = None,
                 encoder_hidden: Sequence[int] | None = None, activation: str | None = None,
                 init: str | None = None, score_bound: float | None = None, alpha_from: int | None = None,
                 alpha_until: int | None = None, warmup: int | None = None,
                 objective: str | None = None, alpha: float | None = None, estimator: str | None = None,
                 first_term: str | None = None, entropy: str | None = None, baseline: str | None = None,
                 baseline_decay: float | None = None, local_from: int | None = None, kernel: str | None = None,
                 steps: int | None = None, leapfrog: int | None = None, leapfrog_jitter: int | None = None,
                 adapt: str | None = None, step_size: float | None = None, acceptance: float | None = None,
                 batch: int | None = None, iterations: int | None = None, optimizer: str | None = None,
                 rate_mean: float | None = None, rate_scale: float | None = None, rate_model: float | None = None,
                 rate_decay: float | None = None, decay_every: int | None = None, precision: str | None = None,
                 seed: int | None = None, binarization: str | None = None, data_seed: int | None = None,
                 report_every: int | None = None, checkpoint_every: int | None = None,
                 checkpoint_minutes: float | None = None, test_every: int | None = None,
                 test_points: int | None = None, test_samples: int | None = None, engine: str | None = None,
                 threads: int | None = None, folder: str | Path | None = None, warm_start: bool = False,
                 progress: bool | None = None) -> None:
        _keep(self, locals())

    def _kind(self, stored: str | None = None) -> dict[str, str]:
        named = [name.removesuffix("-mf") for name in MODELS if name.endswith("-mf")]  # that have names of their own
        if self.likelihood not in (*named, *LIKELIHOODS):
            known = ", ".join(dict.fromkeys((*named, *LIKELIHOODS)))
            raise ValueError(f"likelihood: '{self.likelihood}' is not known; expected one of {known}")
        if self.likelihood in named and stored != "mf":
            return {"model": f"{self.likelihood}-mf"}
        return {"model": "mf", "likelihood": "bernoulli" if self.likelihood == "logistic" else self.likelihood}


def load_estimator(folder: Path) -> _LatentModel:
    """The estimator of a training run's folder; its parameters are those of config.toml."""
    settings = flat(tomllib.loads((folder / "config.toml").read_text()))
    if not (folder / "checkpoint.safetensors").exists():
        raise _hone.InputError(f"{folder}: no checkpoint.safetensors there; expected a run of 'hone train'")
    name = settings["model"]
    model: _LatentModel = VAE() if name == "vae" else MatrixFactorization()
    if name.endswith("-mf"):
        settings["likelihood"] = name.removesuffix("-mf")
    keys = {key: parameter for parameter, key in TABLES.items()}
    known = model.get_params(deep=False)
    model.set_params(**{keys.get(key, key): value for key, value in settings.items() if keys.get(key, key) in known})
    model._take(folder)
    model._files["checkpoint.safetensors"] = _hone.complete_checkpoint(str(folder))
    model._X = model._X_test = None
    model._convolutional = bool(settings.get("channels"))
    model.n_features_in_ = 1  # until the networks say it
    model.n_features_in_, model.threshold_ = model._model().pixels, model._model().threshold
    return model
