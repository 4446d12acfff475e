"""The figure of a fit: marginals of q and of the refined draws."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._result import Result

MOST_PANELS = 100
COLOURS = {"use-q": "#2a7d2a", "use-draws": "#2a7d2a", "use-refined": "#8a6d00", "trust-neither": "#a02020"}


def plot(result: Result, names: str | Sequence[str] | None) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Result.plot needs matplotlib, which is not installed: pip install matplotlib") from error
    if names is None:
        chosen = result.names[: min(12, result.summary["parameter_count"])]
    else:
        given = [names] if isinstance(names, str) else list(names)
        chosen = [result.names[column] for name in given for column in result._columns(name)[1]]
    if not chosen:
        raise ValueError("names: expected at least one name")
    if len(chosen) > MOST_PANELS:
        raise ValueError(f"names: {len(chosen)} values; a figure shows at most {MOST_PANELS}")
    across = min(4, len(chosen))
    down = -(-len(chosen) // across)

    class Picture(Figure):  # a notebook shows it without pyplot
        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png", dpi=100)
            return content.getvalue()

    figure = Picture(figsize=(3.2 * across, 2.4 * down + 0.6), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False)
    for axis, name in zip(panels.flat, [*chosen, *[None] * (down * across - len(chosen))], strict=True):
        if name is None:
            axis.set_visible(False)
            continue
        _panel(result, axis, name)
    panels[0, 0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"verdict: {result.verdict}", color=COLOURS[result.verdict])
    return figure


def _panel(result: Result, axis: Any, name: str) -> None:
    column = result.names.index(name)
    refined, q = result.draws[:, column], result.draws_q[:, column]
    both = np.concatenate([refined, q])
    both = both[np.isfinite(both)]
    axis.set_title(name, fontsize=9)
    axis.set_yticks([])
    axis.tick_params(labelsize=8)
    if both.size == 0:
        return
    low, high = np.quantile(both, [0.002, 0.998])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    bins = np.linspace(low, high, 41)
    axis.hist(refined, bins=bins, density=True, color="#c0392b", alpha=0.45, label="refined")
    axis.hist(q, bins=bins, density=True, histtype="step", color="#1f4e99", linewidth=1.2, label="q")
