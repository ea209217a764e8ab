"""Files of a training: the checkpoint of an unfinished run, and the record of a finished run.

The record is `training.json`, a file with the settings, the losses of each epoch, and computing
times. The checkpoint is a safetensors file with the weights, the best weights so far and AdamW's
moments. The metadata of the checkpoint contain, as JSON, the settings, the losses of each epoch
(the curve), and the state of an unfinished epoch (`Trainer.part`). The checkpoint is replaced after
every epoch, and every five minutes within an epoch. The previous checkpoint remains until the new
checkpoint is complete. The tensors in the checkpoint have these names:

    weights/NAME                  weight NAME of the network
    best/NAME                     weight NAME after the best epoch
    exp_avg/NAME, …               AdamW's moments of weight NAME
    chance/0, chance/1            states of the random generators, if the epoch is unfinished
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.documents import (
    parse_json_object,
    read_json_object,
    refuse_other_format,
    write_json,
)
from contstim.files.files import writing
from contstim.files.records import provenance
from contstim.models.tensors import write_tensors
from contstim.models.training.loop import Epoch, Trainer, best_of
from contstim.reporting.canvas import BLUE, ORANGE, new_figure, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Identity = Mapping[str, object]

CHECKPOINT = "checkpoint.safetensors"
RECORD = "training.json"


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
        ended: why the training ended, as a clause.
        facts: other facts of the record, such as settings and device.
    """

    out: Path
    curve: tuple[Epoch, ...]
    ended: str
    facts: Mapping[str, Any]

    @property
    def best(self) -> Epoch:
        """Epoch with the lowest validation loss; the model has the weights of this epoch."""
        return self.curve[best_of(self.curve)]

    @property
    def perplexity(self) -> float:
        """Perplexity of the validation sentences: exp(mean loss of a prediction in nats)."""
        return math.exp(self.best.validation_loss)

    def write(self) -> None:
        """Write `training.json` and `curve.png` into the folder.

        Raises:
            InputError: if a file cannot be written.
        """
        _draw(self.out / "curve.png", self.curve)
        names = ("cpu_seconds", "wall_seconds", "training_seconds", "predictions")
        totals = {name: sum(getattr(epoch, name) for epoch in self.curve) for name in names}
        record = {
            **provenance(),
            **self.facts,
            "ended": self.ended,
            "best_epoch": best_of(self.curve) + 1,
            "validation_perplexity": self.perplexity,
            "cpu_seconds": totals["cpu_seconds"],
            "wall_seconds": totals["wall_seconds"],
            "tokens_per_second": totals["predictions"] / totals["training_seconds"],
            "curve": [asdict(epoch) for epoch in self.curve],
        }
        write_json(self.out / RECORD, record)

    @classmethod
    def from_file(cls, out: Path) -> Training:
        """Read the record of a finished training from its folder.

        Raises:
            InputError: if the folder has no record, or if the file is not a record of a training.
        """
        path = out / RECORD
        try:
            record = read_json_object(path, constants=True)  # losses may be infinite
            refuse_other_format(path, record)
            if not isinstance(record["settings"], dict):
                raise TypeError("it contains no settings")
            curve = tuple(Epoch(**epoch) for epoch in record.pop("curve"))
            return cls(out, curve, record.pop("ended"), record)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} is not a record of a training ({error}). Use another folder."
            ) from error


def write_checkpoint(folder: Path, identity: Identity, trainer: Trainer) -> None:
    """Replace the checkpoint of a folder.

    Raises:
        InputError: if the checkpoint cannot be written; the previous checkpoint remains.
    """
    tensors = {f"best/{name}": tensor for name, tensor in trainer.best.items()}
    for name, weight in trainer.task.network.named_parameters():
        tensors[f"weights/{name}"] = weight
        for moment, tensor in trainer.optimizer.state[weight].items():
            tensors[f"{moment}/{name}"] = tensor
    tensors |= {f"chance/{i}": state for i, state in enumerate(trainer.generators)}
    curve = [asdict(epoch) for epoch in trainer.curve]
    run = {"settings": dict(identity), "curve": curve, "part": trainer.part}
    write_tensors(folder / CHECKPOINT, tensors, {"run": json.dumps(run)})


def read_checkpoint(folder: Path, trainer: Trainer) -> None:
    """Restore the state of a trainer from a folder's checkpoint.

    Raises:
        InputError: if the file is damaged or belongs to another network.
    """
    import safetensors.torch
    import torch

    path = folder / CHECKPOINT
    run = _read_run(path)
    trainer.curve = tuple(Epoch(**epoch) for epoch in run["curve"])
    trainer.part = tuple(run["part"])
    # Group tensors by the first part of their names. Each group other than the following three
    # contains a moment of AdamW, such as `exp_avg`
    parts: dict[str, dict[str, Any]] = {"best": {}, "weights": {}, "chance": {}}
    for key, tensor in safetensors.torch.load_file(path).items():
        part, _, name = key.partition("/")
        parts.setdefault(part, {})[name] = tensor
    trainer.best, weights, chance = (parts.pop(part) for part in ("best", "weights", "chance"))
    parameters = dict(trainer.task.network.named_parameters())
    if {n: w.shape for n, w in parameters.items()} != {n: w.shape for n, w in weights.items()}:
        raise InputError(f"{path} contains another network. Remove it to train again.")
    with torch.no_grad():
        for name, weight in parameters.items():
            weight.copy_(weights[name])
            moments = {m: of[name].to(weight.device) for m, of in parts.items() if name in of}
            # Before the first step, no weight has moments. Weights without a gradient never have
            # them
            if moments:
                trainer.optimizer.state[weight] = moments
    trainer.generators = tuple(chance[name] for name in sorted(chance))


def is_begun(folder: Path, identity: Identity) -> bool:
    """Return True if a folder contains a run with these settings, False if it is empty or missing.

    Raises:
        InputError: if the folder contains other files, or a run with other settings.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"Cannot write to {folder}: it is a file. Use another folder.")
    # Look for the checkpoint first. While it exists, the run is unfinished, even if there is a
    # record
    if (folder / CHECKPOINT).is_file():
        old = _read_run(folder / CHECKPOINT)["settings"]
    elif (folder / RECORD).is_file():
        old = Training.from_file(folder).facts["settings"]
    elif any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InputError(
            f"{folder} is not empty, but contains no training that this command can resume. Use "
            "another folder."
        )
    else:
        return False
    new = json.loads(json.dumps(dict(identity)))  # converts tuples to lists, as in stored settings
    for name in (*new, *old):
        if new.get(name) != old.get(name):
            raise InputError(
                f"`{name.removesuffix('_sha256')}` must be {old.get(name)!r}, as in the training "
                f"that {folder} contains, got {new.get(name)!r}. Use the earlier value to "
                "continue, or use another folder."
            )
    return True


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a folder, and unfinished checkpoint files of killed runs."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    for partial in folder.glob(f".{CHECKPOINT}.*.partial"):
        partial.unlink(missing_ok=True)


def _read_run(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return parse_json_object(file.metadata()["run"], path, constants=True)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is not a checkpoint of a training ({error}). Remove it to train again."
        ) from error


def _draw(path: Path, curve: Sequence[Epoch]) -> None:
    """Draw perplexities by epoch, and a vertical line at the best epoch."""
    from matplotlib.ticker import MaxNLocator

    epochs = range(1, len(curve) + 1)
    with styled(), writing(path) as partial:
        figure = new_figure(6, 4)
        axes = figure.subplots()
        for name, colour in (("training", BLUE), ("validation", ORANGE)):
            losses = [math.exp(getattr(epoch, f"{name}_loss")) for epoch in curve]
            axes.plot(epochs, losses, marker="o", color=colour, label=name)
        axes.axvline(best_of(curve) + 1, color="0.8", zorder=0, label="best epoch")
        axes.set(xlabel="epoch", ylabel="perplexity", yscale="log", xlim=(0.5, len(curve) + 0.5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.legend()
        figure.savefig(partial, format="png")
