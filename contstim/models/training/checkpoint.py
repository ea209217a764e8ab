"""The state of a training run on disk, and whether a run may be resumed from it.

One safetensors file holds the weights, the best weights so far, AdamW's moments, and as text the
settings and the curve. It is replaced as a whole after every epoch, and every five minutes within
an epoch, then with the states of the random generators: a kill or a full disk leaves the file
before. Names of tensors:

    weights/NAME                  a weight of the network
    best/NAME                     the same weight after the best epoch
    exp_avg/NAME, …               AdamW's moments of it
    chance/0, chance/1            states of the random generators, within an epoch only
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from contstim.documents import parse_json_object, read_json_object
from contstim.errors import InputError
from contstim.models.tensors import write_tensors
from contstim.models.training.loop import Epoch, PartialEpoch
from contstim.models.training.settings import option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from contstim.models.training.loop import Trainer

    Identity = Mapping[str, object]

CHECKPOINT = "checkpoint.safetensors"
RECORD = "training.json"
_NOT_OPTIONS = {
    "kind": "The kind of model",
    "text_sha256": "The text",
    "validation_sha256": "The text kept apart",
    "precision": "The precision",
}


@dataclass(frozen=True, eq=False)
class RunState:
    """The state of a training run.

    Attributes:
        curve: the finished epochs.
        best: the weights after the best of them, by name.
        part: the steps done in the next epoch, if any.
    """

    curve: tuple[Epoch, ...]
    best: Mapping[str, Tensor]
    part: PartialEpoch | None = None


def write_checkpoint(folder: Path, identity: Identity, trainer: Trainer, state: RunState) -> None:
    """Replace the checkpoint of a folder.

    Raises:
        InputError: it cannot be written; the checkpoint before is still there.
    """
    tensors = {f"best/{name}": tensor for name, tensor in state.best.items()}
    for name, weight in trainer.task.network.named_parameters():
        tensors[f"weights/{name}"] = weight
        for moment, tensor in trainer.optimizer.state[weight].items():
            tensors[f"{moment}/{name}"] = tensor
    run = {"settings": dict(identity), "curve": [asdict(epoch) for epoch in state.curve]}
    if state.part is not None:
        part = dict(vars(state.part))
        tensors |= {f"chance/{i}": state for i, state in enumerate(part.pop("generators"))}
        run["part"] = part
    write_tensors(folder / CHECKPOINT, tensors, {"run": json.dumps(run)})


def read_checkpoint(folder: Path, trainer: Trainer) -> RunState:
    """Put a trainer into the state of a folder's checkpoint.

    Raises:
        InputError: the file is damaged, or of another network.
    """
    import safetensors.torch
    import torch

    path = folder / CHECKPOINT
    run = _read_run(path)
    curve = tuple(Epoch(**epoch) for epoch in run["curve"])
    # All names that begin with the same part belong together; the moments remain
    moments: dict[str, dict[str, Tensor]] = {"best": {}, "weights": {}, "chance": {}}
    for key, tensor in safetensors.torch.load_file(path).items():
        part, _, name = key.partition("/")
        moments.setdefault(part, {})[name] = tensor
    best, weights, generators = (moments.pop(part) for part in ("best", "weights", "chance"))
    named = dict(trainer.task.network.named_parameters())
    if {n: w.shape for n, w in named.items()} != {n: w.shape for n, w in weights.items()}:
        raise InputError(f"{path} holds another network. Remove it to train anew.")
    with torch.no_grad():
        for name, weight in named.items():
            weight.copy_(weights[name])
            of_weight = {
                moment: tensors[name].to(weight.device)
                for moment, tensors in moments.items()
                if name in tensors
            }
            if of_weight:  # missing before the first step, and for weights without a gradient
                trainer.optimizer.state[weight] = of_weight
    if "part" not in run:
        return RunState(curve, best)
    states = tuple(generators[name] for name in sorted(generators))
    return RunState(curve, best, PartialEpoch(**run["part"], generators=states))


def is_begun(folder: Path, identity: Identity) -> bool:
    """True if a folder holds a run, begun or finished, with these settings; False if it is free.

    Raises:
        InputError: it holds something else, or a run with another setting; names the setting.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"Cannot write to {folder}: it is a file. Name another folder.")
    # the checkpoint first: until it is removed, a run is not finished, whatever else is there
    if (folder / CHECKPOINT).is_file():
        _check_same(folder, identity, _read_run(folder / CHECKPOINT)["settings"])
        return True
    if (folder / RECORD).is_file():
        _check_same(folder, identity, read_record(folder)["settings"])
        return True
    if any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InputError(
            f"{folder} is not empty and holds no training of this command. Name another folder, "
            f"so that nothing is overwritten."
        )
    return False


def read_record(folder: Path) -> dict[str, Any]:
    """The content of `training.json`.

    Raises:
        InputError: it cannot be read, or is not the record of a training.
    """
    path = folder / RECORD
    try:
        record = read_json_object(path, constants=True)  # losses may be infinite
        if not isinstance(record["settings"], dict):
            raise TypeError("it names no settings")
        return record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a record of a training ({error}).") from error


def forget_checkpoint(folder: Path) -> None:
    """Remove a finished run's checkpoint, and files that a killed run left half written."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    for partial in folder.glob(f".{CHECKPOINT}.*.partial"):
        partial.unlink(missing_ok=True)


def _check_same(folder: Path, now: Identity, then: Identity) -> None:
    """Refuse a run whose settings, as JSON holds them, differ from those of the folder."""
    # through JSON and back, as the old settings went: it turns tuples into lists
    for name in (*now, *then):
        new, old = (json.loads(json.dumps(settings.get(name))) for settings in (now, then))
        if new != old:
            what = _NOT_OPTIONS.get(name, option(name))
            values = "" if name.endswith("_sha256") else f" ({old!r} then, {new!r} now)"
            raise InputError(
                f"{what} is not the one with which {folder} was begun{values}. Give what was given "
                f"then to go on, or name another folder."
            )


def _read_run(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return parse_json_object(file.metadata()["run"], path, constants=True)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is damaged or not a checkpoint of a training ({error}). Remove it to train "
            f"anew."
        ) from error
