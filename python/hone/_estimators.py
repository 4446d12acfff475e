"""VAE and MatrixFactorization, in scikit-learn's manners."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from . import _hone, _torch
from ._data import (bits_of, count_of, data_of, first_not_finite, image_of, own_file, path_of, rows_of, seed_of, shape_in,
                    text_of, unmasked, write_npy)
from ._density import array_of
from ._parameters import KEYS, PARAMETERS, Settings, spelled_out
from ._progress import Work
from ._runs import BEST, IN_MEMORY, NEWEST, Files, columns, read_files, settings_in, settings_of, with_data, write_files

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.6 or later is optional: these do what the estimators themselves need
    from ._standalone import (BaseEstimator, ClassNamePrefixFeaturesOutMixin, NotFittedError, TransformerMixin,
                              validate_data)

DTYPES = [np.float64, np.float32, np.uint8, np.bool_, np.int64, np.int32, np.int16, np.int8, np.uint16, np.uint32]
PARTS = {"data": "X", "test.data": "X_test", "validation.data": "X_validation"}  # key → argument of fit
PLACES = {"data": "data.npy", "test.data": "test.npy", "validation.data": "validation.npy"}  # in a run folder
MODELS, LIKELIHOODS = (
    next(row["takes"] for row in _hone.train_settings() if row["key"] == key).removeprefix("one of ").split(", ")
    for key in ("model", "likelihood"))
LIKELIHOODS.remove("auto")
ESTIMATES = ("mixture", "best", "pilot")  # of `hone eval`


class _LatentModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What both kinds of model share. A parameter that is None has the default of `hone train`."""

    def _kind(self, stored: str | None = None) -> dict[str, str]:
        """The settings `model` and `likelihood`; `stored`: the model of the run that goes on."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, X_test: Any = None, X_validation: Any = None) -> Self:
        """Trains on X: (n, features), or images (n, rows, columns) or (n, rows, columns, 3).

        X_test, or a matrix as second argument, are test data; a 1-D y is ignored. X_validation, or validation_split,
        decide on the best model and on early stopping. Ctrl-C ends the training with a checkpoint. With
        warm_start=True, fit continues the training of before. A training that went wrong is a UserWarning,
        and so is one by the VCD that ends before alpha has reached its value, at alpha_until.
        """
        before = dict(vars(self))
        try:
            self._fit(X, y, X_test, X_validation)
        except BaseException:  # the estimator stays what it was, fitted or not
            vars(self).clear()
            vars(self).update(before)
            raise
        if trouble := self.summary_.get("trouble"):
            warnings.warn(_hone.in_python(f"this training went wrong: {trouble['what']}. {trouble['advice']}"), stacklevel=2)
        if note := self.summary_.get("note"):
            warnings.warn(_hone.in_python(note), stacklevel=2)
        return self

    def _fit(self, X: Any, y: Any, X_test: Any, X_validation: Any) -> None:
        if len(shape_in(y)) >= 2:
            if X_test is not None:
                raise ValueError("X_test is given twice, as y too; pass targets as a 1-D y")
            X_test = y
        if X_validation is not None and not self.validation_every and not self.early_stopping:
            raise ValueError("X_validation: nothing would use it; set validation_every (in iterations) or early_stopping")
        was = getattr(self, "shape_", None)
        given = {key: part for key, part in zip(PARTS, (X, X_test, X_validation), strict=True)
                 if part is not None or key == "data"}
        files = {key: own_file(part) for key, part in given.items()}
        parts = {key: self._checked(part, PARTS[key], reset=key == "data") for key, part in given.items()}
        if getattr(self, "channels", None) and image_of(self.shape_) is None:
            raise ValueError(f"channels: X has rows of {self.n_features_in_} values; give images (n, rows, columns), or shape=(rows, columns)")
        resume = bool(self.warm_start) and (self._folder_has_run() or "_files" in vars(self))
        with tempfile.TemporaryDirectory(prefix="hone-") as temporary:
            place = None if self.folder is None else path_of(self.folder)
            folder = place or Path(temporary) / "run"
            if resume and place is None:
                write_files(folder, self._files)
            named = {key: files[key] or self._place(place, PLACES[key]) for key in parts}
            stored = settings_in(folder) if resume else {}
            settings = self._settings(parts["data"].shape[0], named, stored)
            if resume and "shape" not in stored and image_of(self.shape) == image_of(was):
                settings.pop("shape", None)  # the data of the run had it themselves
            total = settings.get("iterations", "")
            data = [data_of(parts[key], self.shape_, self.binarization) if key in parts else None for key in PARTS]
            def told(text: str) -> str:
                return text if place is not None else re.sub(re.escape(str(folder)) + r"(/[\w.-]+)?", "the fit of before", text)

            try:
                with Work("train", int(total) if total.isdigit() else 400_000, self.progress) as work:
                    _hone.train(list(settings.items()), str(folder), resume, *data, work.stop, work.tell,
                                lambda text: work.say(told(text)))
            except _hone.InputError as error:
                raise _hone.InputError(told(str(error))) from None
            self._take(read_files(folder))
        self._parts = parts
        self.threshold_ = self._model().threshold
        if place is not None:
            self._write_data(place, settings)

    def _folder_has_run(self) -> bool:
        return self.folder is not None and (path_of(self.folder) / "config.toml").exists()

    def _settings(self, size: int, named: dict[str, str], stored: dict[str, Any]) -> dict[str, str]:
        """The settings of `hone train` as texts. named: where data are; stored: the settings of the run that goes on."""
        given = {KEYS[name]: value for name, value in self.get_params(deep=False).items()
                 if name in KEYS and name != "likelihood" and value is not None}
        if stored:  # data are known by their checksum, their names stay
            kept = {key: stored.get(key, "own") for key in (*PARTS, "labels")}
            kept |= {"header": stored["header"]} if "header" in stored else {}  # of the files that the run had
            named = {**kept, **{key: name for key, name in named.items() if kept[key] == "own" and key != "data"}}
        settings = {**self._kind(stored.get("model")), "test.data": "own", **named, **given}
        settings.setdefault("batch", min(100, size))
        return {key: self._text(key, value) for key, value in settings.items()}

    @staticmethod
    def _text(key: str, value: Any) -> str:
        try:
            return text_of(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{PARAMETERS.get(key, key)}: {error}") from error

    @staticmethod
    def _place(folder: Path | None, name: str) -> str:
        return IN_MEMORY if folder is None else str(folder.resolve() / name)

    def _checked(self, X: Any, name: str = "X", *, reset: bool) -> Any:
        """X as rows. `reset`: they are what the model is trained on, and decide on features and shape."""
        if not reset:
            self._fitted()
        X, image = rows_of(unmasked(X, name, self.missing))
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        if kind in ("m", "M"):
            raise TypeError(f"{name}: expected numbers, found dtype {X.dtype}")
        if name != "X" and (width := shape_in(X)[1:]) not in ((), (self.n_features_in_,)):
            hint = "; pass targets as a 1-D y" if name == "X_test" else ""
            raise ValueError(f"{name} has {width[0]} features, X has {self.n_features_in_}{hint}")
        finite = "allow-nan" if self.missing == "ignore" else True
        try:
            X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, order="C", reset=reset, ensure_min_samples=1,
                              ensure_all_finite=finite)
        except ValueError as error:
            place = ""
            if "NaN" in str(error) or "infinity" in str(error):
                place = first_not_finite(X, self.missing == "ignore")
            if "X contains NaN" in str(error):
                raise ValueError(f"Input {name} contains NaN; missing=\"ignore\" leaves missing values out of the likelihood"
                                 f"{place}") from error
            if "X" in str(error) and name == "X" and not place:
                raise
            what = str(error).rstrip(".") if "X" in str(error) and name == "X" else f"{name}: {error}"
            raise type(error)(what + place) from error
        if reset:
            self.shape_ = self._shape_of_data(image)
        elif image is not None and image_of(image) not in (None, image_of(self.shape_)):
            raise ValueError(f"{name}: images of shape {image}; the training data have {self.shape_}")
        return X

    def _shape_of_data(self, found: tuple[int, ...] | None) -> tuple[int, ...]:
        """Of a datum: `shape`, or what X has; (features,) where they are no images."""
        values = self.n_features_in_
        if self.shape is None:
            before = getattr(self, "shape_", ()) if self.warm_start else ()
            if found is None and before and np.prod(before) == values:
                return before
            return found if found is not None and image_of(found) else (values,)
        shape = tuple(int(size) for size in np.ravel(self.shape) if isinstance(size, (int, np.integer)))
        if image_of(shape) is None or min(shape) < 1 or np.prod(shape) != values or len(shape) != np.size(self.shape):
            raise ValueError(f"shape: expected (rows, columns), or (rows, columns, 3) for colour images, that make up the "
                             f"{values} values of a datum; found {self.shape!r}")
        if image_of(found) not in (None, image_of(shape)):
            raise ValueError(f"shape: {shape}, but X has images of shape {found}")
        return shape

    def _fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")

    def _take(self, files: Files) -> None:
        """Keeps what the run folder holds."""
        self._files = files
        self.__dict__.pop("_networks", None)
        self.summary_ = json.loads(files["summary.json"])
        self.n_iter_ = self.summary_["iterations"]
        self.finished_ = self.summary_["finished"]
        self._n_features_out = self.summary_["latent"]

    def _model(self, best: bool = False) -> _hone.TrainedNetworks:
        self._fitted()
        name = BEST if best else NEWEST
        if name not in self._files:
            raise ValueError("best: there is none; a model with validation_every or early_stopping keeps it")
        networks = self.__dict__.setdefault("_networks", {})
        own = os.getpid(), name  # after a fork, the threads of the parent's are not there
        if own not in networks:
            networks[own] = _hone.TrainedNetworks(self._files["config.toml"].decode(), self._files[name],
                                                   self.threads or _hone.default_threads())
        return networks[own]

    def _data(self, X: Any) -> _hone.Data:
        """Data as the model was trained on them: binarized by the threshold that was found in fit."""
        data = data_of(bits_of(self._checked(X, reset=False), self.threshold_), self.shape_)
        if not data.binary and "at random" in self.summary_["binarization"]:
            raise ValueError("X: give bits: the training data were binarized at random")
        return data

    def transform(self, X: Any, *, refine: int = 0, sd: bool = False, draws: int = 16, seed: int = 1,
                  best: bool = False) -> Any:
        """Means of q(z | x). refine=t: one draw of q per datum instead, refined by t steps.

        sd=True returns (means, standard deviations): q's own, or those of `draws` refined draws. best=True takes the best
        model by validation data instead of the newest; so do the methods below. Ctrl-C ends a refinement with
        KeyboardInterrupt: nothing of it is kept.
        """
        model = self._model(best)
        steps = count_of(refine, "refine", 0)
        draws, seed = count_of(draws, "draws", 2), seed_of(seed)
        data = self._data(X)
        if steps == 0:
            mean, deviation = model.encode(data)
            return (mean, deviation) if sd else mean
        with Work("refine", data.rows * (draws if sd else 1), self.progress) as work:
            if not sd:
                return model.refine(data, steps, seed, work.stop, work.tell)[0]
            made = []
            for k in range(draws):
                work.before = k * data.rows
                made.append(model.refine(data, steps, _hone.draw_seed(seed, k), work.stop, work.tell)[0])
        return np.mean(made, axis=0), np.std(made, axis=0, ddof=1)

    def inverse_transform(self, Z: Any, *, best: bool = False) -> np.ndarray:
        """E[x | z] of points (n, latent), as rows: reshape(-1, *shape_) makes images of them."""
        return self._model(best).decode(self._latents(Z))

    def decision_logits(self, Z: Any, *, best: bool = False) -> np.ndarray:
        """The decoder's outputs at points (n, latent): logits, where x is binary."""
        return self._model(best).outputs(self._latents(Z))

    def _latents(self, Z: Any) -> np.ndarray:
        self._fitted()
        Z = array_of(Z, "Z")
        if Z.ndim != 2 or Z.shape[1] != self._n_features_out:
            raise ValueError(f"Z: expected shape (n, {self._n_features_out}), found {Z.shape}")
        if not np.isfinite(Z).all():
            raise ValueError("Z: contains a number that is not finite")
        return Z

    def sample(self, n: int = 1, seed: int = 1, *, best: bool = False) -> np.ndarray:
        """n data drawn from the model, (n, features)."""
        return self._model(best).simulate(count_of(n, "n"), seed_of(seed))

    def score_samples(self, X: Any, method: str = "importance", *, samples: int = 20_000, steps: int | None = None,
                      chains: int | None = None, estimate: str = "mixture", best: bool = False) -> np.ndarray:
        """log p(x) of each datum, as `hone eval` estimates it.

        method: "importance" (samples; estimate "mixture", "best", "pilot", or "exact" where it is known), or "ais"
        (steps, chains). The first Ctrl-C ends it, with KeyboardInterrupt: no data's estimate is kept. `hone score --resume`
        goes on where it was.
        """
        model = self._model(best)
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
        return columns(self._files["metrics.csv"])

    @property
    def validation_(self) -> dict[str, np.ndarray]:
        """The columns of validation_log_likelihood.csv: `mixture` decides on the best model. Empty without evaluations."""
        self._fitted()
        return columns(self._files.get("validation_log_likelihood.csv", b""))

    @property
    def parameters_(self) -> dict[str, np.ndarray]:
        """Weights and biases of the decoder and of q's two networks; weights have one row per input unit."""
        return self._model().parameters()

    def state_dict(self, *, best: bool = False) -> dict[str, Any]:
        """The same for PyTorch: decoder.0.weight (outputs, inputs), decoder.0.bias, decoder.2.weight, mean.0.weight, …"""
        return _torch.state_dict(self._model(best).torch_arrays())

    def torch_module(self, network: str = "decoder", *, best: bool = False) -> Any:
        """A torch.nn.Sequential with the weights of "decoder" (z → logits), "mean" or "sd"."""
        return _torch.module(self._model(best).torch_arrays(), network, settings_of(self._files["config.toml"])["activation"])

    def _write_data(self, folder: Path, named: dict[str, Any]) -> None:
        for key, X in self._parts.items():
            path = folder.resolve() / PLACES[key]
            if named.get(key) == str(path) and not path.exists():
                write_npy(path, X, self.shape_)

    def save(self, folder: str | Path) -> Path:
        """Writes a run folder: `hone train --resume`, `hone eval`, `hone report` and hone.load take it.

        The training data are written too, unless they are a .npy file of their own, so that the run can be continued.
        A pickle holds no data: then config.toml says data = "<memory>", and only fit(X) with the data continues the run.
        """
        self._fitted()
        folder = path_of(folder)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"folder: {folder} is a file; expected a new or empty folder")
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(f"folder: {folder} is not empty")
        settings = settings_of(self._files["config.toml"])
        moved = {key: self._place(folder, PLACES[key]) for key in self._parts if settings.get(key) == IN_MEMORY}
        write_files(folder, with_data(self._files, moved))
        self._write_data(folder, moved)
        return folder

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__()) if hasattr(super(), "__getstate__") else dict(vars(self))
        state.pop("_networks", None)
        if "_parts" in state:  # data do not travel with a pickle
            state["_parts"] = {}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class VAE(_LatentModel):
    """A variational autoencoder: x | z by a network, z standard normal, q(z | x) by networks.

    likelihood: "bernoulli" (bits), "gaussian" (variance 0.01), "gaussian-learned", "categorical" (one-hot groups of
    `categories` neighbours), "poisson" or "negative-binomial" (counts); None: bernoulli. channels: convolutions for
    images, such as (32, 64); X then has the shape (n, rows, columns) or (n, rows, columns, 3), or `shape` says it.
    A parameter that is None has the default of `hone train` (docs/keys.md); batch is at most the number of data.
    folder: a run folder to train in; None: in memory. warm_start: fit continues the training of before. progress: True,
    False, or None for a bar in terminals and notebooks.
    """

    @spelled_out
    def __init__(self, latent: int | None = None, hidden: Sequence[int] | None = None, *,
                 channels: Sequence[int] | None = None, likelihood: str | None = None, **settings: Unpack[Settings]) -> None:
        ...

    def _kind(self, stored: str | None = None) -> dict[str, str]:
        return {"model": "vae", **({} if self.likelihood is None else {"likelihood": self.likelihood})}


class MatrixFactorization(_LatentModel):
    """x | z by a linear map of z; the likelihoods are those of VAE, and "logistic" is another name of "bernoulli".

    The other parameters are those of VAE, except for `hidden` and `channels`, which matrix factorization does not have.
    """

    @spelled_out
    def __init__(self, latent: int | None = None, likelihood: str = "logistic", **settings: Unpack[Settings]) -> None:
        ...

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
    files = read_files(folder)
    if NEWEST not in files:
        raise _hone.InputError(f"{folder}: no {NEWEST} there; expected a run of 'hone train'")
    settings = settings_in(folder)
    name = settings["model"]
    model: _LatentModel = VAE() if name == "vae" else MatrixFactorization()
    if name.endswith("-mf"):
        settings["likelihood"] = name.removesuffix("-mf")
    model._take({**files, NEWEST: _hone.complete_checkpoint(str(folder))})
    model._parts = {}
    model.n_features_in_ = 1  # until the networks say it
    networks = model._model()
    model.n_features_in_, model.threshold_, model.shape_ = networks.pixels, networks.threshold, tuple(networks.shape)
    if image_of(model.shape_):  # also where it was the file that said it: a clone may be trained on rows
        settings["shape"] = list(model.shape_)
    model.set_params(**{name: settings[KEYS[name]] for name in model.get_params(deep=False)
                        if name in KEYS and KEYS[name] in settings})
    return model
