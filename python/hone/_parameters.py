"""The parameters of the estimators: the keys of `hone train` as Python spells them."""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from . import _hone

# Parameter → key: checkpoint_every is checkpoint.every, alpha_from is schedule.alpha_from.
KEYS: dict[str, str] = {row["key"].removeprefix("schedule.").replace(".", "_"): row["key"] for row in _hone.train_settings()}
PARAMETERS = {key: name for name, key in KEYS.items()}
DEFAULTS: dict[str, Any] = {"warm_start": False}  # of all others: None


class Settings(TypedDict, total=False):
    """What both kinds of model take: keys of `hone train`, then what is Python's own."""

    shape: Sequence[int] | None
    categories: int | None
    missing: str | None
    encoder_hidden: Sequence[int] | None
    family: str | None
    rank: int | None
    activation: str | None
    init: str | None
    objective: str | None
    alpha: float | None
    alpha_from: int | None
    alpha_until: int | None
    score_bound: float | None
    estimator: str | None
    first_term: str | None
    entropy: str | None
    baseline: str | None
    baseline_decay: float | None
    local_from: int | None
    kernel: str | None
    steps: int | None
    leapfrog: int | None
    leapfrog_jitter: int | None
    adapt: str | None
    step_size: float | None
    acceptance: float | None
    step_scale: str | None
    batch: int | None
    iterations: int | None
    optimizer: str | None
    rate_mean: float | None
    rate_scale: float | None
    rate_model: float | None
    rate_decay: float | None
    decay_every: int | None
    warmup: int | None
    precision: str | None
    seed: int | None
    binarization: str | None
    data_seed: int | None
    split: float | None
    validation_split: float | None
    validation_every: int | None
    validation_points: int | None
    validation_samples: int | None
    early_stopping: int | None
    report_every: int | None
    checkpoint_every: int | None
    checkpoint_minutes: float | None
    test_every: int | None
    test_points: int | None
    test_samples: int | None
    engine: str | None
    threads: int | None
    folder: str | Path | None
    warm_start: bool
    progress: bool | None


Constructor = TypeVar("Constructor", bound=Callable[..., None])


def spelled_out(constructor: Constructor) -> Constructor:
    """A constructor that sets its parameters; those of Settings stand in its signature, as scikit-learn wants them."""
    own = [each for each in inspect.signature(constructor).parameters.values() if each.kind is not each.VAR_KEYWORD]
    common = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=kind)
              for name, kind in Settings.__annotations__.items()]
    signature = inspect.Signature([*own, *common], return_annotation=None)

    @functools.wraps(constructor)
    def constructed(self: Any, *arguments: Any, **named: Any) -> None:
        try:
            given = signature.bind(self, *arguments, **named)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        given.apply_defaults()
        for name in list(signature.parameters)[1:]:
            setattr(self, name, given.arguments[name])

    constructed.__signature__ = signature  # type: ignore[attr-defined]
    return constructed  # type: ignore[return-value]
