"""The record of a training beside the model: the curve, as numbers and as a picture."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files import write_text, writing
from contstim.models.training.checkpoint import RECORD, read_record
from contstim.models.training.loop import Epoch
from contstim.records import provenance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CURVE = "curve.png"
_INK = "#1f4e79", "#c0504d"


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
        out: the folder of the model.
        curve: the epochs in order.
        ended: why it ended, as a clause.
        facts: further facts of the record, such as settings and device.
    """

    out: Path
    curve: tuple[Epoch, ...]
    ended: str
    facts: Mapping[str, Any]

    @property
    def best(self) -> Epoch:
        """The epoch whose weights the model has: the one with the lowest validation loss."""
        return self.curve[best_of(self.curve)]

    @property
    def perplexity(self) -> float:
        """Of the validation sentences: e to the mean loss of a prediction."""
        return math.exp(self.best.validation_loss)

    def write(self) -> None:
        """Write `training.json` and `curve.png` into the folder.

        Raises:
            InputError: a file cannot be written.
        """
        _draw(self.out / CURVE, self.curve)
        seconds = {
            name: sum(getattr(epoch, name) for epoch in self.curve)
            for name in ("cpu_seconds", "wall_seconds")
        }
        trained = sum(epoch.training_seconds for epoch in self.curve)
        record = {
            **provenance(),
            **self.facts,
            "ended": self.ended,
            "best_epoch": best_of(self.curve) + 1,
            "validation_perplexity": self.perplexity,
            **seconds,
            "tokens_per_second": sum(epoch.predictions for epoch in self.curve) / trained,
            "curve": [asdict(epoch) for epoch in self.curve],
        }
        write_text(self.out / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, out: Path) -> Training:
        """Read the record of a finished training from its folder.

        Raises:
            InputError: there is no record, or it is not that of a training.
        """
        record = read_record(out)
        try:
            curve = tuple(Epoch(**epoch) for epoch in record.pop("curve"))
            return cls(out, curve, record.pop("ended"), record)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{out / RECORD} was written by another version of contstim. Name another folder."
            ) from error


def best_of(curve: Sequence[Epoch]) -> int:
    """The index of the epoch with the lowest validation loss, the first of equals."""
    return min(range(len(curve)), key=lambda number: curve[number].validation_loss)


def _draw(path: Path, curve: Sequence[Epoch]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter, MaxNLocator

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    numbers = range(1, len(curve) + 1)
    for name, colour in zip(("training", "validation"), _INK, strict=True):
        losses = [math.exp(getattr(epoch, f"{name}_loss")) for epoch in curve]
        axes.plot(numbers, losses, marker="o", color=colour, label=name)
    # the epoch whose weights the model has
    best = best_of(curve)
    perplexity = math.exp(curve[best].validation_loss)
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top"}
    axes.annotate(f"kept: {perplexity:,.1f}", (best + 1, perplexity), (0, -7), **place)
    axes.set(xlabel="epoch", ylabel="perplexity", yscale="log")
    axes.margins(y=0.12)
    axes.set_xlim(0.5, len(curve) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    with writing(path) as partial:
        FigureCanvasAgg(figure).print_png(partial)  # type: ignore[no-untyped-call]
