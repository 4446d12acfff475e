"""Trained networks for PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np


def state_dict(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise ImportError("state_dict needs torch, which is not installed: pip install torch") from error
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


def names_of(arrays: dict[str, np.ndarray]) -> str:
    """The networks of a model: "decoder, mean or sd"."""
    names = sorted({key.split(".")[0] for key in arrays})
    return f"{', '.join(names[:-1])} or {names[-1]}"


def module(arrays: dict[str, np.ndarray], network: str, activation: str) -> Any:
    """A torch.nn.Sequential with the weights of one network."""
    own = network + "."
    state = {key.removeprefix(own): value for key, value in state_dict(arrays).items() if key.startswith(own)}
    if not state:
        raise ValueError(f"network: '{network}' is not known; expected {names_of(arrays)}")
    weights = [value for key, value in state.items() if key.endswith("weight")]
    if any(weight.ndim != 2 for weight in weights):
        raise ValueError("this network has convolutions: 'hone export RUN --format torch' makes a module of it")
    from torch import nn

    between = {"relu": nn.ReLU, "tanh": nn.Tanh, "softplus": nn.Softplus}[activation]
    layers: list[Any] = []
    for index, weight in enumerate(weights):
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=f"{2 * index}.bias" in state, dtype=weight.dtype)
        layers += [linear, between()] if index + 1 < len(weights) else [linear]
    made = nn.Sequential(*layers)
    made.load_state_dict(state)
    return made
